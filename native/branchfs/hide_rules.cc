// See hide_rules.h.
#include "native/branchfs/hide_rules.h"

#include <cstddef>

namespace bough {

namespace {

/// `[…]` at pattern[at]: whether it takes `c`, and where it ends. A `[` without `]` stands for itself.
struct ClassMatch {
  bool valid = false;
  bool taken = false;
  std::size_t end = 0;
};
ClassMatch matchClass(std::string_view pattern, std::size_t at, char c) {
  auto byte = [](char value) { return static_cast<unsigned char>(value); };
  std::size_t i = at + 1;
  bool negated = i < pattern.size() && (pattern[i] == '!' || pattern[i] == '^');
  if (negated) i++;
  bool taken = false;
  for (std::size_t first = i; i < pattern.size(); i++) {
    if (pattern[i] == ']' && i > first) return {true, taken != negated, i + 1};
    if (i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']') {
      taken = taken || (byte(pattern[i]) <= byte(c) && byte(c) <= byte(pattern[i + 2]));
      i += 2;
    } else {
      taken = taken || pattern[i] == c;
    }
  }
  return {};
}

std::vector<std::string> components(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    std::size_t slash = path.find('/');
    std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") parts.emplace_back(part);
    if (slash == std::string_view::npos) break;
    path.remove_prefix(slash + 1);
  }
  return parts;
}

bool matchesPath(const std::string* pattern, const std::string* patternEnd, const std::string* part,
                 const std::string* partEnd) {
  if (pattern == patternEnd) return part == partEnd;
  if (*pattern == "**") {
    for (const std::string* rest = part; rest <= partEnd; rest++) {
      if (matchesPath(pattern + 1, patternEnd, rest, partEnd)) return true;
    }
    return false;
  }
  return part != partEnd && matchesGlob(*pattern, *part) && matchesPath(pattern + 1, patternEnd, part + 1, partEnd);
}

}  // namespace

bool matchesGlob(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last `*` and what it has taken so far, to take one more
  std::size_t starName = 0;
  while (n < name.size()) {
    bool taken = false;
    std::size_t next = p;
    if (p < pattern.size()) {
      if (pattern[p] == '*') {
        star = p++;
        starName = n;
        continue;
      }
      ClassMatch inClass = pattern[p] == '[' ? matchClass(pattern, p, name[n]) : ClassMatch{};
      if (inClass.valid) {
        taken = inClass.taken;
        next = inClass.end;
      } else if (pattern[p] == '?') {
        taken = true;
        next = p + 1;
      } else {
        if (pattern[p] == '\\' && p + 1 < pattern.size()) p++;
        taken = pattern[p] == name[n];
        next = p + 1;
      }
    }
    if (taken) {
      p = next;
      n++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++starName;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

HideRules::HideRules(const std::vector<std::string>& globs) {
  for (const std::string& glob : globs) {
    std::vector<std::string> parts = components(glob);
    if (parts.empty()) continue;
    std::string_view withoutEnd = glob;
    while (withoutEnd.ends_with('/')) withoutEnd.remove_suffix(1);
    if (withoutEnd.find('/') == std::string_view::npos) {
      names_.push_back(std::move(parts.front()));
    } else {
      paths_.push_back(std::move(parts));
    }
  }
}

bool HideRules::hidesName(std::string_view name) const {
  for (const std::string& pattern : names_) {
    if (matchesGlob(pattern, name)) return true;
  }
  return false;
}

bool HideRules::hides(std::string_view folder, std::string_view name) const {
  if (hidesName(name)) return true;
  if (paths_.empty()) return false;
  std::vector<std::string> parts = components(folder);
  parts.emplace_back(name);
  for (const std::vector<std::string>& pattern : paths_) {
    if (matchesPath(pattern.data(), pattern.data() + pattern.size(), parts.data(), parts.data() + parts.size())) {
      return true;
    }
  }
  return false;
}

}  // namespace bough
