// A branch mounted in the kernel: one FileSystem served at one mount point. The store holds one for each mounted
// branch.
//
// The parts below it: KernelMount (the mount itself), Session (the worker threads on /dev/fuse), Dispatcher (requests
// to FileSystem calls) and Notifier (the kernel's caches).
#pragma once

#include <memory>
#include <string>

#include "native/branchfs/file_system.h"
#include "native/common/result.h"

namespace bough {

struct MountOptions {
  std::string source = "boughfs";  // what /proc/self/mountinfo shows as the source: the branch's id
  bool allowOther = true;          // other users too: as root always possible, otherwise where /etc/fuse.conf lets
  unsigned maxThreads = 4;         // workers grow on demand up to this number
};

class Mount {
 public:
  /// Mounts `fs` at `mountPoint`, an absolute path of a folder that exists, and returns once the kernel has agreed on
  /// the protocol. A dead mount (its server is gone) of ours at that very path is detached first; no other mount on the
  /// machine is touched or asked. `fs` must outlive the Mount.
  /// Errors: E_MOUNT with the errno and what to do.
  static Result<std::unique_ptr<Mount>> start(FileSystem& fs, const std::string& mountPoint, MountOptions options);

  /// Unmounts and waits until no request is inside `fs`. Programs that still hold files of the mount get ENOTCONN. Safe
  /// to call twice and from any thread but a worker of this mount.
  void stop();
  ~Mount();
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;

  /// Drops what the kernel has cached; never blocks on the kernel (a queue with a thread of its own). Valid as long as
  /// the Mount, also after stop.
  Invalidator& invalidator();
  /// Waits until all invalidations queued so far have reached the kernel (after a commit, before it is answered).
  void drainInvalidations();

  /// Writes back what programs have changed through shared mappings and the kernel still holds. Before a branch point
  /// that shall contain it; fsync and msync need no such thing.
  Result<> flush();

  const std::string& path() const;
  /// False once it was unmounted, by stop or by somebody else (umount(8), abort).
  bool alive() const;

 private:
  class Parts;
  explicit Mount(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Detaches a dead mount of ours at `mountPoint` by looking at /proc/self/mountinfo only; true if there was one. For a
/// store that opens again after a crash.
bool detachStaleMount(const std::string& mountPoint);

}  // namespace bough
