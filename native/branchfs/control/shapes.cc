// See shapes.h.
#include "native/branchfs/control/shapes.h"

#include "native/common/base64.h"

namespace bough {
namespace {

const char* word(Kind kind) {
  switch (kind) {
    case Kind::File:
      return "file";
    case Kind::Directory:
      return "directory";
    case Kind::Symlink:
      return "symlink";
    case Kind::Fifo:
      return "fifo";
    case Kind::Socket:
      return "socket";
    case Kind::CharDevice:
      return "char";
    case Kind::BlockDevice:
      return "block";
  }
  return "file";
}

const char* word(BranchState state) {
  switch (state) {
    case BranchState::Live:
      return "live";
    case BranchState::Committed:
      return "committed";
    case BranchState::Superseded:
      return "superseded";
  }
  return "live";
}

const char* word(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::Added:
      return "added";
    case ChangeKind::Modified:
      return "modified";
    case ChangeKind::Deleted:
      return "deleted";
    case ChangeKind::Renamed:
      return "renamed";
  }
  return "modified";
}

const char* word(ConflictReason reason) {
  switch (reason) {
    case ConflictReason::BothChanged:
      return "both-changed";
    case ConflictReason::AddedInBoth:
      return "added-in-both";
    case ConflictReason::DeletedInParent:
      return "deleted-in-parent";
    case ConflictReason::ChangedInParent:
      return "changed-in-parent";
    case ConflictReason::Type:
      return "type";
    case ConflictReason::ParentMissing:
      return "parent-missing";
  }
  return "both-changed";
}

double milliseconds(const Time& time) {
  return static_cast<double>(time.sec) * 1000 + static_cast<double>(time.nsec / 1000000);
}

Json pathsToJson(const std::vector<std::string>& paths) {
  Json list = Json::array();
  for (const std::string& path : paths) list.push_back(pathToJson(path));
  return list;
}

Json sideToJson(const ConflictSide& side) {
  return {{"type", side.type ? Json(word(*side.type)) : Json()},
          {"size", side.size},
          {"mode", side.mode},
          {"binary", side.binary}};
}

}  // namespace

Json pathToJson(const std::string& path) {
  if (validUtf8(path)) return path;
  return {{"b64", toBase64(path)}};
}

std::string pathFromJson(const Json& json) {
  std::string path;
  if (json.is_string()) {
    path = json.get<std::string>();
  } else {
    const auto b64 = json.is_object() ? json.find("b64") : json.end();
    const auto bytes =
        json.is_object() && b64 != json.end() && b64->is_string() ? fromBase64(b64->get<std::string>()) : std::nullopt;
    if (!bytes) throw BadRequest{"A path must be a string or {\"b64\": \"…\"}."};
    path = *bytes;
  }
  while (path.ends_with('/')) path.pop_back();
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    const std::string_view name = rest.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos) {
      throw BadRequest{"A path is relative to the base, without leading slash, empty names, \".\" and \"..\"."};
    }
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  return path;
}

std::vector<std::string> pathsFromJson(const Json& params, const char* key) {
  const auto found = params.find(key);
  if (found == params.end() || found->is_null()) return {};
  if (!found->is_array()) throw BadRequest{std::string("`") + key + "` must be a list of paths."};
  std::vector<std::string> paths;
  for (const Json& one : *found) paths.push_back(pathFromJson(one));
  return paths;
}

Json toJson(const BranchInfo& info) {
  Json json = {{"id", info.id},
               {"parent", info.parent},
               {"name", info.name},
               {"group", info.group},
               {"exclusive", info.exclusive},
               {"state", word(info.state)},
               {"createdMs", info.createdMs},
               {"children", info.children},
               {"edits", info.edits}};
  if (!info.mountAt.empty()) json["mount"] = info.mountAt;
  if (!info.mountFolder.empty()) json["mountPath"] = pathToJson(info.mountFolder);
  if (!info.committedInto.empty()) json["committedInto"] = info.committedInto;
  if (!info.commit.empty()) json["commit"] = info.commit;
  return json;
}

Json toJson(const FileChange& change) {
  Json what = Json::array();
  if (change.content) what.push_back("content");
  if (change.mode) what.push_back("mode");
  if (change.owner) what.push_back("owner");
  if (change.xattr) what.push_back("xattr");
  if (change.target) what.push_back("target");
  if (change.typeChanged) what.push_back("type");
  Json json = {{"path", pathToJson(change.path)},
               {"kind", word(change.kind)},
               {"type", word(change.type)},
               {"what", std::move(what)},
               {"binary", change.binary},
               {"lineEndingOnly", change.lineEndingOnly},
               {"size", {{"before", change.sizeBefore}, {"after", change.sizeAfter}}},
               {"mode", {{"before", change.modeBefore}, {"after", change.modeAfter}}}};
  if (change.kind == ChangeKind::Renamed) {
    json["from"] = pathToJson(change.from);
    json["similarity"] = change.similarity;
  }
  if (!change.targetBefore.empty() || !change.targetAfter.empty()) {
    json["target"] = {{"before", change.targetBefore}, {"after", change.targetAfter}};
  }
  return json;
}

Json toJson(const DiffPage& page) {
  Json changes = Json::array();
  for (const FileChange& change : page.changes) changes.push_back(toJson(change));
  return {{"changes", std::move(changes)},
          {"total", page.total},
          {"drift", {{"changed", pathsToJson(page.drift.changed)}, {"others", page.drift.others}}}};
}

Json toJson(const FileStat& stat) {
  Json json = {{"type", word(stat.type)},
               {"size", stat.size},
               {"mode", stat.mode},
               {"mtimeMs", milliseconds(stat.mtime)},
               {"ctimeMs", milliseconds(stat.ctime)},
               {"uid", stat.uid},
               {"gid", stat.gid}};
  if (stat.type == Kind::Symlink) json["target"] = stat.target;
  return json;
}

Json toJson(const std::vector<ListedName>& names) {
  Json entries = Json::array();
  for (const ListedName& one : names) entries.push_back({{"name", pathToJson(one.name)}, {"type", word(one.type)}});
  return {{"entries", std::move(entries)}};
}

Json toJson(const Conflict& conflict) {
  return {{"path", pathToJson(conflict.path)},
          {"reason", word(conflict.reason)},
          {"base", sideToJson(conflict.base)},
          {"ours", sideToJson(conflict.ours)},
          {"theirs", sideToJson(conflict.theirs)}};
}

Json toJson(const CommitResult& result) {
  Json left = Json::array();
  for (const LeftOut& one : result.notApplied) {
    left.push_back({{"path", pathToJson(one.path)}, {"what", one.what}, {"why", one.why}});
  }
  return {{"commit", result.commit},         {"into", result.into},
          {"paths", result.paths},           {"partial", result.partial},
          {"superseded", result.superseded}, {"notApplied", std::move(left)},
          {"tookUs", result.tookUs}};
}

Json toJson(const CommitInfo& info) {
  return {{"commit", info.commit}, {"branch", info.branch}, {"into", info.into},
          {"atMs", info.atMs},     {"paths", info.paths},   {"undoable", info.undoable}};
}

Json toJson(const StoreStatus& status) {
  return {{"bytes", status.bytes},        {"objects", status.objects}, {"logBytes", status.logBytes},
          {"branches", status.branches},  {"mounts", status.mounts},   {"commits", status.commits},
          {"freeBytes", status.freeBytes}};
}

Json toJson(const StoreEvent& event) {
  struct Maker {
    Json operator()(const BranchEvent& e) const { return {{"event", "branch"}, {"branch", toJson(e.branch)}}; }
    Json operator()(const GoneEvent& e) const { return {{"event", "gone"}, {"branches", e.branches}}; }
    Json operator()(const EditsEvent& e) const {
      return {{"event", "edits"}, {"branch", e.branch}, {"edits", e.edits}};
    }
    Json operator()(const DriftEvent&) const { return {{"event", "drift"}}; }
  };
  return std::visit(Maker{}, event);
}

Json toJson(const Error& error, const Refusal& refusal) {
  Json json = {{"code", error.code.empty() ? "E_IO" : error.code}, {"message", error.message}, {"errno", error.errnum}};
  if (error.message.empty()) json["message"] = std::string("The system said: ") + std::strerror(error.errnum) + ".";
  if (!refusal.conflicts.empty()) {
    Json list = Json::array();
    for (const Conflict& one : refusal.conflicts) list.push_back(toJson(one));
    json["data"]["conflicts"] = std::move(list);
  }
  if (!refusal.paths.empty()) {
    json["data"]["paths"] = pathsToJson(refusal.paths);
    json["data"]["path"] = pathToJson(refusal.paths.front());
  }
  return json;
}

}  // namespace bough
