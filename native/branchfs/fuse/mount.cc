// A branch mounted in the kernel; see mount.h.
#include "native/branchfs/fuse/mount.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <mutex>

#include "native/branchfs/fuse/dispatcher.h"
#include "native/branchfs/fuse/kernel_mount.h"
#include "native/branchfs/fuse/notifier.h"
#include "native/branchfs/fuse/session.h"

namespace bough {

class Mount::Parts {
 public:
  Parts(FileSystem& fs, std::string point, UniqueFd device, unsigned maxThreads)
      : path(std::move(point)), dispatcher(fs), session(std::move(device), dispatcher, maxThreads) {}

  std::string path;
  fuse::MountEntry entry;
  fuse::Dispatcher dispatcher;
  fuse::Session session;
  fuse::Notifier notifier;
  std::mutex stopping;
  bool stopped = false;
};

namespace {

// The kernel reads ahead 128 KiB by default, too little where each read is a round trip. Only root may say so; a
// slower mount is no error.
void readFurtherAhead(const std::string& device) {
  std::ofstream file("/sys/class/bdi/" + device + "/read_ahead_kb");
  file << fuse::kMaxTransfer / 1024;
}

}  // namespace

Mount::Mount(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Mount::~Mount() { stop(); }

Result<std::unique_ptr<Mount>> Mount::start(FileSystem& fs, const std::string& mountPoint, MountOptions options) {
  BOUGH_ASSIGN(std::string point, fuse::canonicalMountPoint(mountPoint));
  fuse::unmountAllAt(point);
  BOUGH_ASSIGN(UniqueFd device, fuse::mountAt(point, options.source, options.allowOther));
  auto parts = std::make_unique<Parts>(fs, point, std::move(device), options.maxThreads);
  auto entry = fuse::ourMountAt(point);
  if (entry) parts->entry = *entry;
  std::unique_ptr<Mount> mount(new Mount(std::move(parts)));  // the constructor is private
  if (!entry)
    return Error{EIO, "E_MOUNT",
                 "The mount at " + point + " does not show in /proc/self/mountinfo: a symlink at its end?"};
  if (auto agreed = mount->parts_->session.start(); !agreed)
    return Error{agreed.error().errnum, "E_MOUNT",
                 "The kernel and boughfs do not agree on the FUSE protocol. Linux 5.4 or newer is needed."};
  mount->parts_->notifier.start(mount->parts_->session.device());
  readFurtherAhead(mount->parts_->entry.device);
  return mount;
}

void Mount::stop() {
  std::lock_guard guard(parts_->stopping);
  if (parts_->stopped) return;
  parts_->stopped = true;
  // The notifier may wait inside the kernel for a lock that a program holds until we answer it: it ends while the
  // workers still serve.
  (void)flush();
  parts_->notifier.stop();
  fuse::unmountById(parts_->entry.id);
  parts_->session.stop();
  parts_->dispatcher.end();
}

Result<> Mount::flush() {
  // Before INIT was answered the kernel would make us wait for ourselves.
  if (!alive() || !parts_->dispatcher.agreed()) return Done{};
  auto top = fuse::ourMountAt(parts_->path);
  if (!top || top->id != parts_->entry.id) return Done{};
  UniqueFd root(::open(parts_->path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!root) return sysError(errno, "open " + parts_->path);
  if (::syncfs(root.get()) != 0) return sysError(errno, "syncfs " + parts_->path);
  return Done{};
}

Invalidator& Mount::invalidator() { return parts_->notifier; }
void Mount::drainInvalidations() { parts_->notifier.drain(); }
const std::string& Mount::path() const { return parts_->path; }
bool Mount::alive() const { return parts_->session.alive(); }

bool detachStaleMount(const std::string& mountPoint) {
  auto point = fuse::canonicalMountPoint(mountPoint);
  return point && fuse::unmountAllAt(*point) > 0;
}

}  // namespace bough
