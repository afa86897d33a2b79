// The words of the kernel's command line that are for bough-init (docs/guest-protocol.md). Used by main.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bough::guest {

struct Workspace {
  std::string path, tag;
};

struct Settings {
  std::string rootTag;  // empty: the initramfs stays
  std::vector<Workspace> workspaces;
  std::string hostname = "bough";
  std::vector<std::string> problems;  // words that make no sense, said and left out
};

Settings parseCommandLine(std::string_view line);

}  // namespace bough::guest
