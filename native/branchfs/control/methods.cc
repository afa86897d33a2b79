// See methods.h.
#include "native/branchfs/control/methods.h"

#include <unistd.h>

#include <functional>
#include <optional>
#include <unordered_map>

#include "native/branchfs/control/shapes.h"
#include "native/common/base64.h"
#include "native/common/version.h"

namespace bough {
namespace {

constexpr std::size_t kDiffLimit = 5000;
constexpr std::uint64_t kReadLimit = std::uint64_t{8} << 20;

/// One call: its parameters, and what a refusal has to say beside its error.
struct Call {
  Store& store;
  const Json& params;
  Refusal refusal;

  std::string text(const char* key) const {
    const auto found = params.find(key);
    if (found == params.end() || !found->is_string())
      throw BadRequest{std::string("`") + key + "` is missing or no string."};
    return found->get<std::string>();
  }
  std::string textOr(const char* key, std::string otherwise) const {
    return has(key) ? text(key) : std::move(otherwise);
  }
  bool has(const char* key) const {
    const auto found = params.find(key);
    return found != params.end() && !found->is_null();
  }
  std::uint64_t numberOr(const char* key, std::uint64_t otherwise) const {
    if (!has(key)) return otherwise;
    const Json& value = params[key];
    if (!value.is_number_unsigned())
      throw BadRequest{std::string("`") + key + "` must be a whole number, not negative."};
    return value.get<std::uint64_t>();
  }
  bool flag(const char* key) const {
    if (!has(key)) return false;
    if (!params[key].is_boolean()) throw BadRequest{std::string("`") + key + "` must be true or false."};
    return params[key].get<bool>();
  }
  std::string path(const char* key = "path") const {
    const auto found = params.find(key);
    if (found == params.end()) throw BadRequest{std::string("`") + key + "` is missing."};
    return pathFromJson(*found);
  }
  std::vector<std::string> paths() const { return pathsFromJson(params, "paths"); }
  std::vector<std::string> somePaths() const {
    auto list = paths();
    if (list.empty()) throw BadRequest{"`paths` must name at least one path."};
    return list;
  }
  std::string branch() const { return text("branch"); }
  Side side() const {
    const std::string side = textOr("side", "branch");
    if (side == "branch") return Side::Branch;
    if (side == "point") return Side::Point;
    if (side == "parent") return Side::Parent;
    throw BadRequest{"`side` must be \"branch\", \"point\" or \"parent\"."};
  }
};

using Method = Result<Json> (*)(Call&);

Result<Json> hello(Call& call) {
  return Json{{"version", kVersion},
              {"store", call.store.options().folder},
              {"base", call.store.options().base},
              {"pid", ::getpid()},
              {"branches", call.store.list().size()}};
}

Result<Json> create(Call& call) {
  BranchPlan plan;
  plan.parent = call.textOr("parent", kBase);
  plan.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(call.numberOr("count", 1), UINT32_MAX));
  const std::string group = call.textOr("group", "exclusive");
  if (group != "exclusive" && group != "independent") {
    throw BadRequest{"`group` must be \"exclusive\" or \"independent\"."};
  }
  plan.exclusive = group == "exclusive";
  plan.flush = call.flag("flush");
  if (call.has("names")) {
    const Json& names = call.params["names"];
    if (!names.is_array()) throw BadRequest{"`names` must be a list of strings."};
    for (const Json& name : names) {
      if (!name.is_string()) throw BadRequest{"`names` must be a list of strings."};
      plan.names.push_back(name.get<std::string>());
    }
  }
  BOUGH_ASSIGN(const MadeBranches made, call.store.create(plan));
  Json branches = Json::array();
  for (const BranchInfo& info : made.branches) branches.push_back(toJson(info));
  return Json{{"group", made.group}, {"branches", std::move(branches)}, {"pauseUs", made.pauseUs}};
}

Result<Json> list(Call& call) {
  Json branches = Json::array();
  for (const BranchInfo& info : call.store.list()) branches.push_back(toJson(info));
  return Json{{"branches", std::move(branches)}};
}

Result<Json> info(Call& call) {
  BOUGH_ASSIGN(const BranchInfo found, call.store.info(call.branch()));
  return toJson(found);
}

Result<Json> rename(Call& call) {
  BOUGH_ASSIGN(const BranchInfo renamed, call.store.rename(call.branch(), call.text("name")));
  return toJson(renamed);
}

Result<Json> mount(Call& call) {
  const std::string at = call.text("at");
  const std::string folder = call.has("path") ? call.path() : std::string();
  BOUGH_TRY(call.store.mount(call.branch(), at, folder));
  Json result = {{"at", at}};
  if (!folder.empty()) result["path"] = pathToJson(folder);
  return result;
}

Result<Json> unmount(Call& call) {
  BOUGH_TRY(call.store.unmount(call.branch()));
  return Json::object();
}

Result<Json> diff(Call& call) {
  std::string against = call.textOr("against", "point");
  if (against == "point") against.clear();
  BOUGH_ASSIGN(const DiffPage page,
               call.store.diff(call.branch(), against, call.numberOr("from", 0), call.numberOr("limit", kDiffLimit)));
  return toJson(page);
}

Result<Json> stat(Call& call) {
  BOUGH_ASSIGN(const FileStat found, call.store.stat(call.branch(), call.side(), call.path()));
  return toJson(found);
}

Result<Json> readdir(Call& call) {
  BOUGH_ASSIGN(const auto names, call.store.readdir(call.branch(), call.side(), call.path()));
  return toJson(names);
}

Result<Json> read(Call& call) {
  BOUGH_ASSIGN(const ReadPiece piece, call.store.read(call.branch(), call.side(), call.path(),
                                                      call.numberOr("offset", 0), call.numberOr("length", kReadLimit)));
  return Json{{"data", toBase64(piece.data)}, {"size", piece.size}, {"eof", piece.eof}};
}

Result<Json> conflicts(Call& call) {
  BOUGH_ASSIGN(const auto found, call.store.conflicts(call.branch(), call.paths()));
  Json list = Json::array();
  for (const Conflict& one : found) list.push_back(toJson(one));
  return Json{{"conflicts", std::move(list)}};
}

Result<Json> resolve(Call& call) {
  const std::string how = call.text("take");
  Take take = Take::Ours;
  std::string data;
  std::optional<std::uint32_t> mode;
  std::optional<std::string> seen;
  if (how == "theirs") {
    take = Take::Theirs;
  } else if (how == "content") {
    take = Take::Content;
    const auto bytes = fromBase64(call.text("data"));
    if (!bytes) throw BadRequest{"`data` must be base64."};
    data = *bytes;
    if (call.has("mode")) mode = static_cast<std::uint32_t>(call.numberOr("mode", 0) & 07777);
    if (call.has("seen")) {
      seen = fromBase64(call.text("seen"));
      if (!seen) throw BadRequest{"`seen` must be base64."};
    }
  } else if (how != "ours") {
    throw BadRequest{"`take` must be \"ours\", \"theirs\" or \"content\"."};
  }
  BOUGH_TRY(call.store.resolve(call.branch(), call.path(), take, data, mode, seen));
  return Json::object();
}

Result<Json> revert(Call& call) {
  BOUGH_ASSIGN(const std::uint64_t count, call.store.revert(call.branch(), call.somePaths()));
  return Json{{"reverted", count}};
}

Result<Json> take(Call& call) {
  BOUGH_ASSIGN(const std::uint64_t count, call.store.take(call.branch(), call.text("from"), call.somePaths()));
  return Json{{"taken", count}};
}

Result<Json> commit(Call& call) {
  if (call.has("paths")) call.somePaths();
  BOUGH_ASSIGN(const CommitResult result, call.store.commit(call.branch(), call.paths(), call.refusal));
  return toJson(result);
}

Result<Json> commits(Call& call) {
  Json list = Json::array();
  for (const CommitInfo& one : call.store.commits()) list.push_back(toJson(one));
  return Json{{"commits", std::move(list)}};
}

Result<Json> undo(Call& call) {
  BOUGH_ASSIGN(const std::uint64_t paths, call.store.undo(call.text("commit"), call.refusal));
  return Json{{"paths", paths}};
}

Result<Json> forget(Call& call) {
  BOUGH_TRY(call.store.forget(call.text("commit")));
  return Json::object();
}

Result<Json> rebase(Call& call) {
  BOUGH_ASSIGN(const std::uint64_t paths, call.store.rebase(call.branch(), call.refusal));
  return Json{{"rebased", true}, {"paths", paths}};
}

Result<Json> abort(Call& call) {
  BOUGH_ASSIGN(const auto gone, call.store.abort(call.branch(), call.flag("recursive")));
  return Json{{"branches", gone}};
}

Result<Json> status(Call& call) {
  BOUGH_ASSIGN(const StoreStatus found, call.store.status());
  return toJson(found);
}

Result<Json> check(Call& call) {
  const auto problems = call.store.check();
  return Json{{"ok", problems.empty()}, {"problems", problems}};
}

Result<Json> sync(Call& call) {
  BOUGH_TRY(call.store.sync());
  return Json::object();
}

Result<Json> subscribe(Call&) { return Json::object(); }

const std::unordered_map<std::string, Method>& methods() {
  static const std::unordered_map<std::string, Method> kMethods = {
      {"hello", hello},
      {"branch.create", create},
      {"branch.list", list},
      {"branch.info", info},
      {"branch.rename", rename},
      {"branch.mount", mount},
      {"branch.unmount", unmount},
      {"branch.diff", diff},
      {"branch.stat", stat},
      {"branch.readdir", readdir},
      {"branch.read", read},
      {"branch.conflicts", conflicts},
      {"branch.resolve", resolve},
      {"branch.revert", revert},
      {"branch.take", take},
      {"branch.commit", commit},
      {"commit.list", commits},
      {"commit.undo", undo},
      {"commit.forget", forget},
      {"branch.rebase", rebase},
      {"branch.abort", abort},
      {"store.status", status},
      {"store.check", check},
      {"store.sync", sync},
      {"subscribe", subscribe},
  };
  return kMethods;
}

std::string lineOf(const Json& json) {
  // Nothing of a file system need be UTF-8; where the protocol has no place for other bytes they are replaced.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string errorLine(const Json& id, const Error& error, const Refusal& refusal = {}) {
  return lineOf({{"id", id}, {"error", toJson(error, refusal)}});
}

}  // namespace

Answer answer(Store& store, std::string_view line) {
  Json id;
  try {
    const Json request = Json::parse(line, nullptr, false);
    if (!request.is_object()) throw BadRequest{"A request is one line with a JSON object."};
    if (const auto found = request.find("id"); found != request.end()) id = *found;
    const auto name = request.find("method");
    if (name == request.end() || !name->is_string()) throw BadRequest{"`method` is missing."};
    const auto method = methods().find(name->get<std::string>());
    if (method == methods().end()) throw BadRequest{"There is no method " + name->get<std::string>() + "."};
    const auto given = request.find("params");
    const Json params = given == request.end() || given->is_null() ? Json::object() : *given;
    if (!params.is_object()) throw BadRequest{"`params` must be an object."};

    Call call{store, params, {}};
    Result<Json> result = method->second(call);
    if (!result) return {errorLine(id, result.error(), call.refusal), false};
    return {lineOf({{"id", id}, {"result", std::move(*result)}}), method->first == "subscribe"};
  } catch (const BadRequest& bad) {
    return {errorLine(id, Error{EINVAL, "E_BAD_REQUEST", bad.message}), false};
  } catch (const std::exception& error) {
    return {errorLine(id, Error{EIO, "E_IO", std::string("boughfs could not do it: ") + error.what()}), false};
  }
}

std::string eventLine(const StoreEvent& event) { return lineOf(toJson(event)); }

}  // namespace bough
