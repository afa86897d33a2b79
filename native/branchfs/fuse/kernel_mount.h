// The mount itself: making and removing a FUSE mount, as root by mount(2), otherwise with fusermount3. Reads
// /proc/self/mountinfo only and never asks a file system: another mount may hang. Used by Mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::fuse {

/// A line of /proc/self/mountinfo (proc(5)).
struct MountEntry {
  std::uint64_t id = 0;
  std::string device;  // "major:minor"
  std::string point;
  std::string type;
  std::string source;
};

/// All mounts of this process's namespace, a mount on top of another after it.
std::vector<MountEntry> readMounts();
std::vector<MountEntry> parseMounts(const std::string& mountinfo);

/// What mountinfo shows as the type of our mounts.
inline constexpr const char* kMountType = "fuse.bough";

/// `point` with its folders' symlinks resolved, without touching what is mounted at it.
Result<std::string> canonicalMountPoint(const std::string& point);

/// Mounts at `point` and gives the device to serve. `id` becomes the mount's id.
Result<UniqueFd> mountAt(const std::string& point, const std::string& source, bool allowOther);

/// Detaches the mount with this id if it is (still) there and ends its connection where the kernel lets us.
void unmountById(std::uint64_t id);
/// Detaches every mount of ours (type fuse.bough) at exactly this path; how many there were.
int unmountAllAt(const std::string& point);

/// The topmost mount of ours at this path.
Result<MountEntry> ourMountAt(const std::string& point);

}  // namespace bough::fuse
