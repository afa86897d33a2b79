// Mounts the tests' file system in memory, so that bench/transport can measure the transport alone.
//   fuse_memory_mount MOUNTPOINT   prints `ready`, unmounts when its stdin ends
#include <unistd.h>

#include <cstdio>

#include "native/branchfs/fuse/memory_fs.h"
#include "native/branchfs/fuse/mount.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuse_memory_mount MOUNTPOINT\n");
    return 2;
  }
  bough::fuse::MemoryFs fs;
  auto mount = bough::Mount::start(fs, argv[1], {});
  if (!mount) {
    std::fprintf(stderr, "%s\n", mount.error().message.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  (*mount)->stop();
  return 0;
}
