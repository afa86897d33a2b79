// Attributes as the protocol wants them. Used by the dispatcher's operations.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

// "Forever" as a lifetime: a year; the kernel turns it into jiffies.
constexpr std::uint64_t kForeverSeconds = 365ULL * 24 * 3600;

std::uint64_t seconds(Keep keep) {
  switch (keep) {
    case Keep::Forever:
      return kForeverSeconds;
    case Keep::Second:
      return 1;
    case Keep::No:
      return 0;
  }
  return 0;
}

// The kernel's new_encode_dev(): 32 bits.
std::uint32_t encodeDevice(std::uint64_t device) {
  const std::uint32_t major = gnu_dev_major(device), minor = gnu_dev_minor(device);
  return (minor & 0xff) | (major << 8) | ((minor & ~0xffu) << 12);
}

std::uint64_t unsignedSeconds(const Time& time) { return static_cast<std::uint64_t>(time.sec); }
SxTime sxTime(const Time& time) { return {time.sec, time.nsec, 0}; }

}  // namespace

int number(const Error& error) { return error.errnum > 0 && error.errnum < 512 ? error.errnum : EIO; }

std::uint32_t fileType(Kind kind) {
  switch (kind) {
    case Kind::File:
      return S_IFREG;
    case Kind::Directory:
      return S_IFDIR;
    case Kind::Symlink:
      return S_IFLNK;
    case Kind::Fifo:
      return S_IFIFO;
    case Kind::Socket:
      return S_IFSOCK;
    case Kind::CharDevice:
      return S_IFCHR;
    case Kind::BlockDevice:
      return S_IFBLK;
  }
  return S_IFREG;
}

fuse_attr encode(const Attr& attr) {
  fuse_attr out{};
  out.ino = attr.id;
  out.size = attr.size;
  out.blocks = attr.blocks;
  out.atime = unsignedSeconds(attr.atime);
  out.mtime = unsignedSeconds(attr.mtime);
  out.ctime = unsignedSeconds(attr.ctime);
  out.atimensec = attr.atime.nsec;
  out.mtimensec = attr.mtime.nsec;
  out.ctimensec = attr.ctime.nsec;
  out.mode = fileType(attr.kind) | (attr.mode & 07777);
  out.nlink = attr.nlink;
  out.uid = attr.uid;
  out.gid = attr.gid;
  out.rdev = encodeDevice(attr.rdev);
  out.blksize = 4096;
  return out;
}

fuse_entry_out encodeEntry(const Looked& looked) {
  fuse_entry_out out{};
  out.nodeid = looked.attr.id;
  out.entry_valid = out.attr_valid = seconds(looked.keep);
  // nodeid 0: there is no such name, and the kernel may remember that.
  if (looked.attr.id != kNoNode) out.attr = encode(looked.attr);
  return out;
}

fuse_attr_out encodeAttr(const Looked& looked) {
  fuse_attr_out out{};
  out.attr_valid = seconds(looked.keep);
  out.attr = encode(looked.attr);
  return out;
}

StatxOut encodeStatx(const Looked& looked) {
  const Attr& attr = looked.attr;
  StatxOut out{};
  out.attr_valid = seconds(looked.keep);
  Statx& sx = out.stat;
  sx.mask = STATX_BASIC_STATS | STATX_BTIME;
  sx.blksize = 4096;
  sx.nlink = attr.nlink;
  sx.uid = attr.uid;
  sx.gid = attr.gid;
  sx.mode = static_cast<std::uint16_t>(fileType(attr.kind) | (attr.mode & 07777));
  sx.ino = attr.id;
  sx.size = attr.size;
  sx.blocks = attr.blocks;
  sx.atime = sxTime(attr.atime);
  sx.btime = sxTime(attr.btime);
  sx.ctime = sxTime(attr.ctime);
  sx.mtime = sxTime(attr.mtime);
  sx.rdev_major = gnu_dev_major(attr.rdev);
  sx.rdev_minor = gnu_dev_minor(attr.rdev);
  return out;
}

int answerEntry(Call& call, const Result<Looked>& looked) {
  if (!looked) return number(looked.error());
  if (looked->attr.id != kNoNode) call.held.looked(looked->attr.id);
  return call.out.put(encodeEntry(*looked)) ? 0 : EIO;
}

std::uint32_t withoutSuidSgid(std::uint32_t mode) {
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  // Without group execution the bit once meant mandatory locking: Linux leaves it.
  if (mode & S_IXGRP) mode &= ~static_cast<std::uint32_t>(S_ISGID);
  return mode;
}

void killSuidSgid(Call& call, NodeId id, std::optional<Handle> handle) {
  auto now = call.fs.getattr(id, handle);
  if (!now || now->attr.kind == Kind::Directory) return;
  const std::uint32_t mode = withoutSuidSgid(now->attr.mode);
  if (mode == now->attr.mode) return;
  SetAttr change;
  change.mode = mode;
  (void)call.fs.setattr(call.caller(), id, handle, change);
}

}  // namespace bough::fuse
