// The dispatcher's operations on folders: open, list, sync.
#include <algorithm>
#include <vector>

#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

constexpr char kZeros[8] = {};

// One entry of READDIR or, with `plus`, of READDIRPLUS; false if it does not fit.
bool putItem(AnswerWriter& out, const DirItem& item, bool plus) {
  const std::size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
  const std::size_t length = FUSE_DIRENT_ALIGN(head + item.name.size());
  if (out.rest().size() < length) return false;
  if (plus) {
    // Without attributes (also "." and ".."): nodeid 0, which the kernel takes as "not looked up".
    fuse_entry_out entry{};
    if (item.looked) entry = encodeEntry(*item.looked);
    out.put(entry);
  }
  struct {
    std::uint64_t ino, off;
    std::uint32_t namelen, type;
  } dirent{item.id, item.cookie, static_cast<std::uint32_t>(item.name.size()), fileType(item.kind) >> 12};
  static_assert(sizeof(dirent) == FUSE_NAME_OFFSET);
  out.put(dirent);
  out.append(item.name);
  out.append(std::string_view(kZeros, length - head - item.name.size()));
  return true;
}

int list(Call& call, bool plus) {
  auto in = call.in.take<fuse_read_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::Folder)) return EBADF;
  AnswerWriter out(call.out.rest().first(std::min<std::size_t>(in->size, call.out.rest().size())));
  std::optional<NodeId> unused;
  auto listed = call.fs.readdir(in->fh, in->offset, plus, [&](DirItem& item) {
    if (!putItem(out, item, plus)) {
      // It was looked up for us, but the client will never know.
      if (item.looked) unused = item.looked->attr.id;
      return false;
    }
    if (item.looked && item.looked->attr.id != kNoNode) call.held.looked(item.looked->attr.id);
    return true;
  });
  if (unused) call.fs.forget(*unused, 1);
  if (!listed && out.used() == 0) return number(listed.error());
  call.out.advance(out.used());
  return 0;
}

}  // namespace

int opendir(Call& call) {
  auto in = call.in.take<fuse_open_in>();
  if (!in) return EINVAL;
  auto opened = call.fs.opendir(call.node());
  if (!opened) return number(opened.error());
  call.held.opened(opened->handle, Held::What::Folder);
  fuse_open_out out{};
  out.fh = opened->handle;
  // The kernel may fill its cache of the listing; whether an older one still counts is for the file system to say.
  out.open_flags = FOPEN_CACHE_DIR;
  if (opened->keepCache) out.open_flags |= FOPEN_KEEP_CACHE;
  return call.out.put(out) ? 0 : EIO;
}

int readdir(Call& call) { return list(call, false); }
int readdirplus(Call& call) { return list(call, true); }

int releasedir(Call& call) {
  auto in = call.in.take<fuse_release_in>();
  if (!in) return EINVAL;
  if (!call.held.closed(in->fh, Held::What::Folder)) return EBADF;
  call.fs.releasedir(in->fh);
  return 0;
}

int fsyncdir(Call& call) {
  auto in = call.in.take<fuse_fsync_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::Folder)) return EBADF;
  auto synced = call.fs.fsyncdir(call.node());
  return synced ? 0 : number(synced.error());
}

int syncfs(Call& call) {
  auto synced = call.fs.fsyncdir(kRootNode);
  return synced ? 0 : number(synced.error());
}

}  // namespace bough::fuse
