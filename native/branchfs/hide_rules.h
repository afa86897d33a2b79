// Hide rules: globs for what a branch must not see of the base. Base asks them for every name.
//   *.key        no slash: this name in any folder
//   conf/secret  with a slash: this path, from the base's root ("/secret" for one in the root itself)
//   ?, [a-z], *  within a name; ** as a whole component: any number of folders
// A hidden folder hides all that is in it. A rule that ends in "/" means the same as without.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bough {

class HideRules {
 public:
  HideRules() = default;
  explicit HideRules(const std::vector<std::string>& globs);

  bool empty() const { return names_.empty() && paths_.empty(); }
  /// `folder`: path relative to the base, "" for the root.
  bool hides(std::string_view folder, std::string_view name) const;
  /// By the rules without slash alone.
  bool hidesName(std::string_view name) const;

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> paths_;  // components
};

/// One name against one pattern without slash (`*`, `?`, `[…]`, `\` before a character takes it as it is).
bool matchesGlob(std::string_view pattern, std::string_view name);

}  // namespace bough
