// One change with all that a person sees of it. See changes.h.
#include <algorithm>
#include <string>

#include "native/branchfs/changes.h"

namespace bough {
namespace {

constexpr std::size_t kMaxText = std::size_t{4} << 20;  // larger files are not compared line by line

std::string withoutCarriageReturns(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] == '\n')) continue;
    result.push_back(text[i]);
  }
  return result;
}

/// How many bytes of the two files are in lines that both have, in percent of the larger one.
int similarityOf(const std::string& a, const std::string& b) {
  std::unordered_map<std::string_view, int> lines;
  const auto each = [](std::string_view text, auto&& f) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view line = text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
      f(line);
      text.remove_prefix(line.size());
    }
  };
  each(a, [&](std::string_view line) { lines[line]++; });
  std::size_t shared = 0;
  each(b, [&](std::string_view line) {
    const auto found = lines.find(line);
    if (found == lines.end() || found->second == 0) return;
    found->second--;
    shared += line.size();
  });
  const std::size_t larger = std::max(a.size(), b.size());
  return larger == 0 ? 100 : static_cast<int>(shared * 100 / larger);
}

}  // namespace

FileChange describe(const PathChange& change, const NodeCompare& compare) {
  FileChange result;
  const Node& shown = change.after ? *change.after : *change.before;
  result.path = change.path;
  result.kind = change.kind;
  result.type = shown.kind;
  result.from = change.from;
  result.content = change.what.content;
  result.mode = change.what.mode;
  result.owner = change.what.owner;
  result.xattr = change.what.xattr;
  result.target = change.what.target;
  result.typeChanged = change.what.type;
  if (change.before && change.kind != ChangeKind::Added) {
    result.sizeBefore = compare.size(*change.before);
    result.modeBefore = change.before->mode;
    result.targetBefore = change.before->target;
  }
  if (change.after && change.kind != ChangeKind::Deleted) {
    result.sizeAfter = compare.size(*change.after);
    result.modeAfter = change.after->mode;
    result.targetAfter = change.after->target;
  }
  const auto isFile = [](const NodePtr& node) { return node && node->kind == Kind::File; };
  if (isFile(change.before)) result.binary = compare.binary(*change.before);
  if (isFile(change.after)) result.binary = result.binary || compare.binary(*change.after);

  const bool bothFiles = isFile(change.before) && isFile(change.after);
  const bool small = result.sizeBefore <= kMaxText && result.sizeAfter <= kMaxText;
  if (bothFiles && change.what.content && !small) result.similarity = 0;
  if (!bothFiles || !change.what.content || result.binary || !small) return result;
  const auto before = compare.read(*change.before, kMaxText);
  const auto after = compare.read(*change.after, kMaxText);
  if (!before || !after) return result;
  result.lineEndingOnly = withoutCarriageReturns(*before) == withoutCarriageReturns(*after);
  if (change.kind == ChangeKind::Renamed) result.similarity = similarityOf(*before, *after);
  return result;
}

}  // namespace bough
