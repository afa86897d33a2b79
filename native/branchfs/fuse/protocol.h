// The kernel's FUSE protocol: <linux/fuse.h> as installed, plus what newer kernels say and that header does not know
// yet. Names and layouts are those of include/uapi/linux/fuse.h in the kernel source (protocol 7.45).
#pragma once

#include <linux/fuse.h>
#include <sys/ioctl.h>

#include <cstdint>

namespace bough::fuse {

// Protocol 7.39: STATX.
inline constexpr std::uint32_t kOpStatx = 52;  // FUSE_STATX

struct SxTime {  // struct fuse_sx_time
  std::int64_t tv_sec;
  std::uint32_t tv_nsec;
  std::int32_t reserved;
};

struct Statx {  // struct fuse_statx
  std::uint32_t mask;
  std::uint32_t blksize;
  std::uint64_t attributes;
  std::uint32_t nlink;
  std::uint32_t uid;
  std::uint32_t gid;
  std::uint16_t mode;
  std::uint16_t spare0;
  std::uint64_t ino;
  std::uint64_t size;
  std::uint64_t blocks;
  std::uint64_t attributes_mask;
  SxTime atime, btime, ctime, mtime;
  std::uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
  std::uint64_t spare2[14];
};
static_assert(sizeof(Statx) == 256);

struct StatxIn {  // struct fuse_statx_in
  std::uint32_t getattr_flags;
  std::uint32_t reserved;
  std::uint64_t fh;
  std::uint32_t sx_flags;
  std::uint32_t sx_mask;
};

struct StatxOut {  // struct fuse_statx_out
  std::uint64_t attr_valid;
  std::uint32_t attr_valid_nsec;
  std::uint32_t flags;
  std::uint64_t spare[2];
  Statx stat;
};
static_assert(sizeof(StatxOut) == 288);

// Protocol 7.45: COPY_FILE_RANGE with a 64-bit answer; the request is that of FUSE_COPY_FILE_RANGE.
inline constexpr std::uint32_t kOpCopyFileRange64 = 53;  // FUSE_COPY_FILE_RANGE_64

struct CopyFileRangeOut {  // struct fuse_copy_file_range_out
  std::uint64_t bytes_copied;
};

/// The newest protocol that this server speaks, and the oldest kernel that it serves (Linux 5.4 says 7.31; 7.33 brought
/// the extended SETXATTR; older ones are refused).
inline constexpr std::uint32_t kMajor = 7;
inline constexpr std::uint32_t kMinor = 45;
inline constexpr std::uint32_t kOldestMinor = 31;

/// The largest WRITE and READ, in bytes.
inline constexpr std::uint32_t kMaxTransfer = 1u << 20;
/// What a request's buffer must hold: headers, names and a full WRITE.
inline constexpr std::uint32_t kRequestBytes = kMaxTransfer + 4096;
/// What an answer's buffer must hold.
inline constexpr std::uint32_t kAnswerBytes = kMaxTransfer + 4096;

}  // namespace bough::fuse
