// See command_line.h.
#include "native/guest/init/command_line.h"

#include <climits>
#include <optional>

namespace bough::guest {
namespace {

constexpr std::size_t kMaxTag = 36;  // virtio-fs: the tag's field (virtio 1.2, section 5.11.4)
constexpr std::size_t kMaxWorkspaces = 16;

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// %20 and the like; nothing where a percent sign stands alone.
std::optional<std::string> decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexDigit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

bool isTag(std::string_view tag) { return !tag.empty() && tag.size() <= kMaxTag; }

bool isHostname(std::string_view name) { return !name.empty() && name.size() <= HOST_NAME_MAX; }

/// Absolute, and no name in it that leads elsewhere.
bool isPlainPath(std::string_view path) {
  if (!path.starts_with('/') || path.size() < 2 || path.size() >= PATH_MAX) return false;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    path.remove_prefix(name.size());
  }
  return true;
}

std::optional<Workspace> parseWorkspace(std::string_view value) {
  const std::size_t colon = value.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  auto path = decode(value.substr(0, colon));
  const std::string_view tag = value.substr(colon + 1);
  if (!path || !isPlainPath(*path) || !isTag(tag)) return std::nullopt;
  return Workspace{.path = std::move(*path), .tag = std::string(tag)};
}

/// False: the word makes no sense.
bool take(std::string_view word, Settings& settings) {
  constexpr std::string_view kRoot = "bough.root=", kVirtioFs = "virtiofs:", kWorkspace = "bough.workspace=",
                             kHostname = "bough.hostname=";
  if (word.starts_with(kRoot)) {
    word.remove_prefix(kRoot.size());
    if (!word.starts_with(kVirtioFs) || !isTag(word.substr(kVirtioFs.size()))) return false;
    settings.rootTag = word.substr(kVirtioFs.size());
    return true;
  }
  if (word.starts_with(kWorkspace)) {
    auto workspace = parseWorkspace(word.substr(kWorkspace.size()));
    if (!workspace || settings.workspaces.size() >= kMaxWorkspaces) return false;
    settings.workspaces.push_back(std::move(*workspace));
    return true;
  }
  if (word.starts_with(kHostname)) {
    if (!isHostname(word.substr(kHostname.size()))) return false;
    settings.hostname = word.substr(kHostname.size());
    return true;
  }
  return false;
}

}  // namespace

Settings parseCommandLine(std::string_view line) {
  Settings settings;
  constexpr std::string_view kSpace = " \t\n";
  while (true) {
    const std::size_t start = line.find_first_not_of(kSpace);
    if (start == std::string_view::npos) return settings;
    line.remove_prefix(start);
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    line.remove_prefix(word.size());
    if (word.starts_with("bough.") && !take(word, settings)) settings.problems.emplace_back(word);
  }
}

}  // namespace bough::guest
