// The dispatcher's operations on names: lookup, creation of everything but regular files, links, removal, renames.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

Kind kindOf(std::uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      return Kind::Fifo;
    case S_IFSOCK:
      return Kind::Socket;
    case S_IFCHR:
      return Kind::CharDevice;
    case S_IFBLK:
      return Kind::BlockDevice;
    default:
      return Kind::File;
  }
}

// The kernel's new_decode_dev().
std::uint64_t decodeDevice(std::uint32_t device) {
  return gnu_dev_makedev((device & 0xfff00) >> 8, (device & 0xff) | ((device >> 12) & 0xfff00));
}

int done(const Result<>& result) { return result ? 0 : number(result.error()); }

int renameTo(Call& call, NodeId newParent, std::uint32_t flags) {
  auto name = call.in.name();
  auto newName = call.in.name();
  if (!name || !newName) return EINVAL;
  return done(call.fs.rename(call.node(), *name, newParent, *newName, flags));
}

}  // namespace

int lookup(Call& call) {
  auto name = call.in.string();
  if (!name || name->empty()) return EINVAL;
  if (name->find('/') != std::string_view::npos) return EINVAL;
  return answerEntry(call, call.fs.lookup(call.node(), *name));
}

int readlink(Call& call) {
  auto target = call.fs.readlink(call.node());
  if (!target) return number(target.error());
  return call.out.append(*target) ? 0 : EIO;
}

int mknod(Call& call) {
  auto in = call.in.take<fuse_mknod_in>();
  auto name = call.in.name();
  if (!in || !name) return EINVAL;
  if ((in->mode & S_IFMT) == S_IFDIR || (in->mode & S_IFMT) == S_IFLNK) return EINVAL;
  return answerEntry(call, call.fs.mknod(call.caller(), call.node(), *name, kindOf(in->mode), in->mode & 07777,
                                         decodeDevice(in->rdev)));
}

int mkdir(Call& call) {
  auto in = call.in.take<fuse_mkdir_in>();
  auto name = call.in.name();
  if (!in || !name) return EINVAL;
  return answerEntry(call, call.fs.mkdir(call.caller(), call.node(), *name, in->mode & 07777));
}

int symlink(Call& call) {
  auto name = call.in.name();
  auto target = call.in.string();
  if (!name || !target) return EINVAL;
  return answerEntry(call, call.fs.symlink(call.caller(), call.node(), *name, *target));
}

int link(Call& call) {
  auto in = call.in.take<fuse_link_in>();
  auto name = call.in.name();
  if (!in || !name) return EINVAL;
  return answerEntry(call, call.fs.link(in->oldnodeid, call.node(), *name));
}

int unlink(Call& call) {
  auto name = call.in.name();
  if (!name) return EINVAL;
  return done(call.fs.unlink(call.node(), *name));
}

int rmdir(Call& call) {
  auto name = call.in.name();
  if (!name) return EINVAL;
  return done(call.fs.rmdir(call.node(), *name));
}

int rename(Call& call) {
  auto in = call.in.take<fuse_rename_in>();
  if (!in) return EINVAL;
  return renameTo(call, in->newdir, 0);
}

int rename2(Call& call) {
  auto in = call.in.take<fuse_rename2_in>();
  if (!in) return EINVAL;
  return renameTo(call, in->newdir, in->flags);
}

}  // namespace bough::fuse
