// The dispatcher's operations on attributes: stat, setattr, extended attributes, statfs.
#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

Result<Looked> attributesOf(Call& call, std::uint32_t flags, std::uint64_t fh) {
  if ((flags & FUSE_GETATTR_FH) && call.held.holds(fh, Held::What::File)) return call.fs.getattr(call.node(), fh);
  return call.fs.getattr(call.node(), std::nullopt);
}

// The kernel checks nothing for these names, so they would be promises that nobody keeps (POSIX ACLs).
bool unsupported(std::string_view name) { return name.starts_with("system."); }

// The kernel's XATTR_SIZE_MAX, XATTR_NAME_MAX and XATTR_LIST_MAX.
constexpr std::size_t kMaxXattrValue = 65536;
constexpr std::size_t kMaxXattrName = 255;

std::optional<std::string_view> xattrName(Call& call) {
  auto name = call.in.string();
  if (!name || name->empty() || name->size() > kMaxXattrName) return std::nullopt;
  return name;
}

// A value or its length, as getxattr(2) and listxattr(2) ask with size 0.
int answerSized(Call& call, std::uint32_t size, std::string_view value) {
  if (size == 0) {
    fuse_getxattr_out out{};
    out.size = static_cast<std::uint32_t>(value.size());
    return call.out.put(out) ? 0 : EIO;
  }
  if (value.size() > size) return ERANGE;
  return call.out.append(value) ? 0 : E2BIG;
}

}  // namespace

int getattr(Call& call) {
  auto in = call.in.take<fuse_getattr_in>();
  if (!in) return EINVAL;
  auto now = attributesOf(call, in->getattr_flags, in->fh);
  if (!now) return number(now.error());
  return call.out.put(encodeAttr(*now)) ? 0 : EIO;
}

int statx(Call& call) {
  auto in = call.in.take<StatxIn>();
  if (!in) return EINVAL;
  auto now = attributesOf(call, in->getattr_flags, in->fh);
  if (!now) return number(now.error());
  return call.out.put(encodeStatx(*now)) ? 0 : EIO;
}

int setattr(Call& call) {
  auto in = call.in.take<fuse_setattr_in>();
  if (!in) return EINVAL;
  const std::uint32_t valid = in->valid;
  std::optional<Handle> handle;
  if (valid & FATTR_FH) {
    if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
    handle = in->fh;
  }
  if (in->atimensec >= 1'000'000'000 || in->mtimensec >= 1'000'000'000 || in->ctimensec >= 1'000'000'000) return EINVAL;

  SetAttr change;
  if (valid & FATTR_MODE) change.mode = in->mode & 07777;
  if (valid & FATTR_UID) change.uid = in->uid;
  if (valid & FATTR_GID) change.gid = in->gid;
  if (valid & FATTR_SIZE) change.size = in->size;
  if (valid & FATTR_ATIME) {
    if (valid & FATTR_ATIME_NOW)
      change.atimeNow = true;
    else
      change.atime = Time{static_cast<std::int64_t>(in->atime), in->atimensec};
  }
  if (valid & FATTR_MTIME) {
    if (valid & FATTR_MTIME_NOW)
      change.mtimeNow = true;
    else
      change.mtime = Time{static_cast<std::int64_t>(in->mtime), in->mtimensec};
  }
  if (valid & FATTR_CTIME) change.ctime = Time{static_cast<std::int64_t>(in->ctime), in->ctimensec};

  // HANDLE_KILLPRIV_V2: a change of owner always takes suid and sgid; a truncation where the kernel says so.
  const bool owner = (valid & (FATTR_UID | FATTR_GID)) != 0;
  if ((owner || (valid & FATTR_KILL_SUIDGID)) && !change.mode) {
    auto now = call.fs.getattr(call.node(), handle);
    if (!now) return number(now.error());
    if (now->attr.kind != Kind::Directory) {
      const std::uint32_t mode = withoutSuidSgid(now->attr.mode);
      if (mode != now->attr.mode) change.mode = mode;
    }
  }

  auto looked = call.fs.setattr(call.caller(), call.node(), handle, change);
  if (!looked) return number(looked.error());
  return call.out.put(encodeAttr(*looked)) ? 0 : EIO;
}

int setxattr(Call& call) {
  auto in = call.in.take<fuse_setxattr_in>();
  if (!in) return EINVAL;
  auto name = xattrName(call);
  if (!name) return EINVAL;
  auto value = call.in.bytes(in->size);
  if (!value) return EINVAL;
  if (value->size() > kMaxXattrValue) return E2BIG;
  if (unsupported(*name)) return EOPNOTSUPP;
  std::string_view text(reinterpret_cast<const char*>(value->data()), value->size());
  auto set = call.fs.setxattr(call.node(), *name, text, static_cast<int>(in->flags));
  return set ? 0 : number(set.error());
}

int getxattr(Call& call) {
  auto in = call.in.take<fuse_getxattr_in>();
  if (!in) return EINVAL;
  auto name = xattrName(call);
  if (!name) return EINVAL;
  if (unsupported(*name)) return EOPNOTSUPP;
  auto value = call.fs.getxattr(call.node(), *name);
  if (!value) return number(value.error());
  return answerSized(call, in->size, *value);
}

int listxattr(Call& call) {
  auto in = call.in.take<fuse_getxattr_in>();
  if (!in) return EINVAL;
  auto names = call.fs.listxattr(call.node());
  if (!names) return number(names.error());
  std::string list;
  for (const auto& name : *names) {
    if (unsupported(name)) continue;
    list += name;
    list += '\0';
  }
  return answerSized(call, in->size, list);
}

int removexattr(Call& call) {
  auto name = xattrName(call);
  if (!name) return EINVAL;
  if (unsupported(*name)) return EOPNOTSUPP;
  auto removed = call.fs.removexattr(call.node(), *name);
  return removed ? 0 : number(removed.error());
}

int statfs(Call& call) {
  auto stat = call.fs.statfs();
  if (!stat) return number(stat.error());
  fuse_statfs_out out{};
  out.st.blocks = stat->f_blocks;
  out.st.bfree = stat->f_bfree;
  out.st.bavail = stat->f_bavail;
  out.st.files = stat->f_files;
  out.st.ffree = stat->f_ffree;
  out.st.bsize = static_cast<std::uint32_t>(stat->f_bsize);
  out.st.namelen = static_cast<std::uint32_t>(stat->f_namemax);
  out.st.frsize = static_cast<std::uint32_t>(stat->f_frsize);
  return call.out.put(out) ? 0 : EIO;
}

}  // namespace bough::fuse
