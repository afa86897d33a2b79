// The dispatcher's operations on files' data: open, create, read, write, sync, holes, copies.
#include <fcntl.h>

#include <algorithm>

#include "native/branchfs/fuse/call.h"

namespace bough::fuse {
namespace {

// Flags that mean something to the kernel only: a server that opens its own files must not see them.
std::uint32_t fileFlags(std::uint32_t flags) {
  return flags & ~static_cast<std::uint32_t>(O_DIRECT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_ASYNC | O_NOFOLLOW);
}

// One COPY_FILE_RANGE at most, so that a copy between files without shared extents does not hold a worker for ever; the
// program goes on with the rest. Whole file copies on a file system with reflinks stay cheap at this size.
constexpr std::uint64_t kMaxCopy = 1ULL << 30;

fuse_open_out openOut(const Opened& opened) {
  fuse_open_out out{};
  out.fh = opened.handle;
  // No FLUSH at close: everything written is already in the file system.
  out.open_flags = FOPEN_NOFLUSH;
  if (opened.keepCache) out.open_flags |= FOPEN_KEEP_CACHE;
  return out;
}

int answerCreated(Call& call, const Result<std::pair<Looked, Opened>>& created) {
  if (!created) return number(created.error());
  const auto& [looked, opened] = *created;
  call.held.looked(looked.attr.id);
  call.held.opened(opened.handle, Held::What::File);
  return call.out.put(encodeEntry(looked)) && call.out.put(openOut(opened)) ? 0 : EIO;
}

}  // namespace

int open(Call& call) {
  auto in = call.in.take<fuse_open_in>();
  if (!in) return EINVAL;
  if (in->open_flags & FUSE_OPEN_KILL_SUIDGID) killSuidSgid(call, call.node(), std::nullopt);
  auto opened = call.fs.open(call.node(), fileFlags(in->flags));
  if (!opened) return number(opened.error());
  call.held.opened(opened->handle, Held::What::File);
  return call.out.put(openOut(*opened)) ? 0 : EIO;
}

int create(Call& call) {
  auto in = call.in.take<fuse_create_in>();
  auto name = call.in.name();
  if (!in || !name) return EINVAL;
  return answerCreated(call, call.fs.create(call.caller(), call.node(), *name, in->mode & 07777, fileFlags(in->flags)));
}

int tmpfile(Call& call) {
  auto in = call.in.take<fuse_create_in>();
  if (!in) return EINVAL;
  return answerCreated(call, call.fs.tmpfile(call.caller(), call.node(), in->mode & 07777, fileFlags(in->flags)));
}

int read(Call& call) {
  auto in = call.in.take<fuse_read_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
  auto space = call.out.rest();
  auto got =
      call.fs.read(in->fh, in->offset, space.first(std::min<std::size_t>({in->size, kMaxTransfer, space.size()})));
  if (!got) return number(got.error());
  call.out.advance(*got);
  return 0;
}

int write(Call& call) {
  auto in = call.in.take<fuse_write_in>();
  if (!in) return EINVAL;
  auto data = call.in.bytes(in->size);
  if (!data) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
  if (in->write_flags & FUSE_WRITE_KILL_SUIDGID) killSuidSgid(call, call.node(), in->fh);
  // A page of a shared mapping goes where it lies, also for a file that is open for appending.
  const bool append = (in->flags & O_APPEND) != 0 && (in->write_flags & FUSE_WRITE_CACHE) == 0;
  auto put = call.fs.write(in->fh, in->offset, *data, append);
  if (!put) return number(put.error());
  fuse_write_out out{};
  out.size = static_cast<std::uint32_t>(*put);
  return call.out.put(out) ? 0 : EIO;
}

int release(Call& call) {
  auto in = call.in.take<fuse_release_in>();
  if (!in) return EINVAL;
  if (!call.held.closed(in->fh, Held::What::File)) return EBADF;
  call.fs.release(in->fh);
  return 0;
}

int fsync(Call& call) {
  auto in = call.in.take<fuse_fsync_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
  auto synced = call.fs.fsync(in->fh, (in->fsync_flags & FUSE_FSYNC_FDATASYNC) != 0);
  return synced ? 0 : number(synced.error());
}

int fallocate(Call& call) {
  auto in = call.in.take<fuse_fallocate_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
  auto allocated = call.fs.fallocate(in->fh, in->mode, in->offset, in->length);
  return allocated ? 0 : number(allocated.error());
}

int lseek(Call& call) {
  auto in = call.in.take<fuse_lseek_in>();
  if (!in) return EINVAL;
  if (!call.held.holds(in->fh, Held::What::File)) return EBADF;
  if (in->whence != SEEK_DATA && in->whence != SEEK_HOLE) return EINVAL;
  auto found = call.fs.lseek(in->fh, in->offset, static_cast<int>(in->whence));
  if (!found) return number(found.error());
  return call.out.put(fuse_lseek_out{*found}) ? 0 : EIO;
}

namespace {
Result<std::size_t> copy(Call& call) {
  auto in = call.in.take<fuse_copy_file_range_in>();
  if (!in || in->flags != 0) return sys(EINVAL);
  if (!call.held.holds(in->fh_in, Held::What::File) || !call.held.holds(in->fh_out, Held::What::File))
    return sys(EBADF);
  return call.fs.copyRange(in->fh_in, in->off_in, in->fh_out, in->off_out,
                           static_cast<std::size_t>(std::min(in->len, kMaxCopy)));
}
}  // namespace

int copyFileRange(Call& call) {
  auto copied = copy(call);
  if (!copied) return number(copied.error());
  fuse_write_out out{};
  out.size = static_cast<std::uint32_t>(*copied);
  return call.out.put(out) ? 0 : EIO;
}

int copyFileRange64(Call& call) {
  auto copied = copy(call);
  if (!copied) return number(copied.error());
  return call.out.put(CopyFileRangeOut{*copied}) ? 0 : EIO;
}

}  // namespace bough::fuse
