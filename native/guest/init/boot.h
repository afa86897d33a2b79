// From the kernel's hands to a machine that programs can run in: mounts, root, workspace, loopback, limits. Used once,
// by main.cc.
#pragma once

#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/guest/init/command_line.h"

namespace bough::guest {

inline constexpr const char* kCgroupMount = "/sys/fs/cgroup";

/// What failed on the way is in the problems and on the console; everything else is done all the same.
class Boot {
 public:
  /// /proc /sys /dev /run /tmp and what lies in them.
  void mountBasics();
  /// The virtio-fs root, if one is asked for: the basics move into it, and it becomes "/".
  void switchRoot(const std::string& tag);
  void mountWorkspaces(const std::vector<Workspace>& workspaces);
  void bringLoopbackUp();
  void raiseLimits();

  void problem(const char* code, const std::string& message);
  const std::vector<Error>& problems() const { return problems_; }
  /// "initramfs", or "virtiofs:<tag>".
  const std::string& root() const { return root_; }
  const std::vector<std::string>& workspaces() const { return mounted_; }

 private:
  bool mount(const char* source, const std::string& at, const char* type, unsigned long flags, const char* options);

  std::vector<Error> problems_;
  std::string root_ = "initramfs";
  std::vector<std::string> mounted_;
};

/// Everything of a file whose size the kernel does not tell; empty if it cannot be read.
std::string readWhole(const char* path, std::size_t most);

}  // namespace bough::guest
