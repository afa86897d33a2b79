// mountinfo and mount points, without a mount.
#include "native/branchfs/fuse/kernel_mount.h"

#include <doctest/doctest.h>

using namespace bough::fuse;

TEST_CASE("mountinfo: optional fields and escaped characters") {
  auto mounts = parseMounts(
      "36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw,errors=continue\n"
      "40 36 0:45 / /tmp/a\\040b\\134c rw,nodev shared:3 master:1 - fuse.bough b123456789 rw,user_id=0\n"
      "garbage\n"
      "41 36 0:46 / /tmp/plain rw - tmpfs tmpfs rw\n");
  REQUIRE(mounts.size() == 3);
  CHECK(mounts[0].type == "ext4");
  CHECK(mounts[1].id == 40);
  CHECK(mounts[1].device == "0:45");
  CHECK(mounts[1].point == "/tmp/a b\\c");
  CHECK(mounts[1].type == "fuse.bough");
  CHECK(mounts[1].source == "b123456789");
  CHECK(mounts[2].point == "/tmp/plain");
}

TEST_CASE("a mount point is an absolute path of something below an existing folder") {
  CHECK(canonicalMountPoint("relative").error().code == "E_MOUNT");
  CHECK(canonicalMountPoint("").error().errnum == EINVAL);
  CHECK(canonicalMountPoint("/").error().errnum == EINVAL);
  CHECK(canonicalMountPoint("/no/such/folder/x").error().errnum == ENOENT);
  CHECK(canonicalMountPoint("/usr/../proc/").value() == "/proc");
}
