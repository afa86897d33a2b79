// See journal.h.
#include "native/branchfs/commit/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <type_traits>

#include "native/common/codec.h"
#include "native/common/crc32c.h"

namespace bough::base_commit {

namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 9;  // length, checksum, type
constexpr const char* kStagingPrefix = ".bough-stage-";

void put(Encoder& out, const Time& t) {
  out.signedNumber(t.sec);
  out.number(t.nsec);
}
Time getTime(Decoder& in) {
  Time t;
  t.sec = in.signedNumber();
  t.nsec = in.number32();
  return t;
}

void put(Encoder& out, const Identity& id) {
  out.flag(id.known);
  if (!id.known) return;
  out.number(id.dev);
  out.number(id.ino);
  out.number(id.size);
  put(out, id.mtime);
  put(out, id.ctime);
  put(out, id.btime);
}
Identity getIdentity(Decoder& in) {
  Identity id;
  id.known = in.flag();
  if (!id.known) return id;
  id.dev = in.number();
  id.ino = in.number();
  id.size = in.number();
  id.mtime = getTime(in);
  id.ctime = getTime(in);
  id.btime = getTime(in);
  return id;
}

void put(Encoder& out, Kind kind) { out.byte(static_cast<std::uint8_t>(kind)); }
Kind getKind(Decoder& in) {
  const std::uint8_t value = in.byte();
  if (value > static_cast<std::uint8_t>(Kind::BlockDevice)) in.fail();
  return static_cast<Kind>(value);
}

template <typename T, typename Write>
void putOptional(Encoder& out, const std::optional<T>& value, Write write) {
  out.flag(value.has_value());
  if (value) write(*value);
}
void put(Encoder& out, const std::optional<std::uint32_t>& value) {
  putOptional(out, value, [&](std::uint32_t v) { out.number(v); });
}
std::optional<std::uint32_t> getOptional32(Decoder& in) {
  if (!in.flag()) return std::nullopt;
  return in.number32();
}
void put(Encoder& out, const std::optional<std::uint64_t>& value) {
  putOptional(out, value, [&](std::uint64_t v) { out.number(v); });
}
std::optional<std::uint64_t> getOptional64(Decoder& in) {
  if (!in.flag()) return std::nullopt;
  return in.number();
}

void put(Encoder& out, const FolderMeta& meta) {
  put(out, meta.mode);
  put(out, meta.uid);
  put(out, meta.gid);
  putOptional(out, meta.mtime, [&](const Time& t) { put(out, t); });
  putOptional(out, meta.xattrs, [&](const Xattrs& xattrs) {
    out.number(xattrs.size());
    for (const auto& [key, value] : xattrs) {
      out.bytes(key);
      out.bytes(value);
    }
  });
}
FolderMeta getMeta(Decoder& in) {
  FolderMeta meta;
  meta.mode = getOptional32(in);
  meta.uid = getOptional32(in);
  meta.gid = getOptional32(in);
  if (in.flag()) meta.mtime = getTime(in);
  if (in.flag()) {
    Xattrs xattrs;
    for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
      std::string key = in.bytes();
      xattrs[std::move(key)] = in.bytes();
    }
    meta.xattrs = std::move(xattrs);
  }
  return meta;
}

void put(Encoder& out, const std::vector<NotApplied>& list) {
  out.number(list.size());
  for (const NotApplied& one : list) {
    out.bytes(one.path);
    out.bytes(one.what);
    out.bytes(one.reason);
  }
}
std::vector<NotApplied> getNotApplied(Decoder& in) {
  std::vector<NotApplied> list;
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    NotApplied one;
    one.path = in.bytes();
    one.what = in.bytes();
    one.reason = in.bytes();
    list.push_back(std::move(one));
  }
  return list;
}

std::optional<Prepared> decodePrepared(std::string_view bytes) {
  Decoder in(bytes);
  if (in.byte() != kVersion) return std::nullopt;
  Prepared p;
  p.txn = in.number32();
  p.undoOf = in.number32();
  p.firstRoot = in.number32();
  p.tag = in.number();
  p.base = getIdentity(in);
  p.note = in.bytes();
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    PlannedItem item;
    const std::uint8_t type = in.byte();
    if (type > static_cast<std::uint8_t>(PlannedItem::Type::Meta)) in.fail();
    item.type = static_cast<PlannedItem::Type>(type);
    item.path = in.bytes();
    item.beside = in.flag();
    item.replaces = in.flag();
    item.oldKind = getKind(in);
    item.old = getIdentity(in);
    item.oldMeta = getMeta(in);
    item.becomes = getMeta(in);
    p.items.push_back(std::move(item));
  }
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    PlannedFolder folder;
    folder.path = in.bytes();
    folder.identity = getIdentity(in);
    folder.onlyReplaced = in.flag();
    folder.beside = in.flag();
    p.folders.push_back(std::move(folder));
  }
  if (!in.ok() || !in.atEnd()) return std::nullopt;
  return p;
}

std::optional<Decided> decodeDecided(std::string_view bytes) {
  Decoder in(bytes);
  Decided d;
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    StagedItem item;
    item.present = in.flag();
    item.kind = getKind(in);
    item.identity = getIdentity(in);
    item.keptDigest = getOptional64(in);
    d.items.push_back(item);
  }
  d.notApplied = getNotApplied(in);
  if (!in.ok() || !in.atEnd()) return std::nullopt;
  return d;
}

std::optional<Applied> decodeApplied(std::string_view bytes) {
  Decoder in(bytes);
  Applied a;
  a.boot = in.bytes();
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    ItemOutcome item;
    item.path = in.bytes();
    item.root = in.number32();
    item.leftOut = in.flag();
    item.present = in.flag();
    item.kind = getKind(in);
    item.identity = getIdentity(in);
    item.attributes = getMeta(in);
    item.digest = getOptional64(in);
    a.items.push_back(std::move(item));
  }
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) {
    std::string path = in.bytes();
    a.folders.emplace_back(std::move(path), getTime(in));
  }
  a.notApplied = getNotApplied(in);
  for (std::size_t left = in.count(); left > 0 && in.ok(); --left) a.raced.push_back(in.bytes());
  if (!in.ok() || !in.atEnd()) return std::nullopt;
  return a;
}

Error damaged() {
  return Error{EIO, "E_STORE_DAMAGED",
               "A commit's journal does not say anything sensible although its checksum is right. It was written by "
               "another version of boughfs: start that one, or move the store away."};
}

}  // namespace

std::string encode(const Prepared& p) {
  Encoder out;
  out.byte(kVersion);
  out.number(p.txn);
  out.number(p.undoOf);
  out.number(p.firstRoot);
  out.number(p.tag);
  put(out, p.base);
  out.bytes(p.note);
  out.number(p.items.size());
  for (const PlannedItem& item : p.items) {
    out.byte(static_cast<std::uint8_t>(item.type));
    out.bytes(item.path);
    out.flag(item.beside);
    out.flag(item.replaces);
    put(out, item.oldKind);
    put(out, item.old);
    put(out, item.oldMeta);
    put(out, item.becomes);
  }
  out.number(p.folders.size());
  for (const PlannedFolder& folder : p.folders) {
    out.bytes(folder.path);
    put(out, folder.identity);
    out.flag(folder.onlyReplaced);
    out.flag(folder.beside);
  }
  return out.take();
}

std::string encode(const Decided& d) {
  Encoder out;
  out.number(d.items.size());
  for (const StagedItem& item : d.items) {
    out.flag(item.present);
    put(out, item.kind);
    put(out, item.identity);
    put(out, item.keptDigest);
  }
  put(out, d.notApplied);
  return out.take();
}

std::string encode(const Applied& a) {
  Encoder out;
  out.bytes(a.boot);
  out.number(a.items.size());
  for (const ItemOutcome& item : a.items) {
    out.bytes(item.path);
    out.number(item.root);
    out.flag(item.leftOut);
    out.flag(item.present);
    put(out, item.kind);
    put(out, item.identity);
    put(out, item.attributes);
    put(out, item.digest);
  }
  out.number(a.folders.size());
  for (const auto& [path, mtime] : a.folders) {
    out.bytes(path);
    put(out, mtime);
  }
  put(out, a.notApplied);
  out.number(a.raced.size());
  for (const std::string& path : a.raced) out.bytes(path);
  return out.take();
}

Result<JournalFile> JournalFile::create(int folderFd, std::uint64_t bytes) {
  JournalFile file;
  file.fd_.reset(::openat(folderFd, kJournalName, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.fd_) return sys(errno);
  if (::fallocate(file.fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    return sys(errno);
  }
  return file;
}

Result<JournalFile> JournalFile::open(int folderFd) {
  JournalFile file;
  file.fd_.reset(::openat(folderFd, kJournalName, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file.fd_) return sys(errno);
  return file;
}

Result<Journal> JournalFile::load() {
  struct stat st = {};
  if (::fstat(fd_.get(), &st) != 0) return sys(errno);
  std::string bytes(static_cast<std::size_t>(st.st_size), '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::pread(fd_.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys(errno);
    if (got == 0) bytes.resize(at);
    at += static_cast<std::size_t>(got);
  }
  Journal journal;
  std::string_view left = bytes;
  while (left.size() >= kHeaderBytes) {
    Decoder head(left);
    const std::uint32_t length = head.fixed32();
    const std::uint32_t checksum = head.fixed32();
    if (length > left.size() - kHeaderBytes) break;
    const std::string_view body = left.substr(kHeaderBytes - 1, length + 1U);  // type and payload
    if (crc32c(body) != checksum) break;
    const std::string_view payload = body.substr(1);
    switch (static_cast<RecordType>(body[0])) {
      case RecordType::Prepared:
        journal.prepared = decodePrepared(payload);
        if (!journal.prepared) return damaged();
        break;
      case RecordType::Decided:
        journal.decided = decodeDecided(payload);
        if (!journal.decided) return damaged();
        break;
      case RecordType::Applied:
        journal.applied = decodeApplied(payload);
        if (!journal.applied) return damaged();
        break;
      case RecordType::Reverting:
        journal.reverting = true;
        break;
      case RecordType::RolledBack:
        journal.rolledBack = true;
        break;
      case RecordType::Done:
        journal.done = true;
        break;
      case RecordType::Acknowledged:
        journal.acknowledged = true;
        break;
      default:
        return damaged();
    }
    left.remove_prefix(kHeaderBytes + length);
  }
  end_ = bytes.size() - left.size();
  const std::size_t expected = journal.prepared ? journal.prepared->items.size() : 0;
  if ((journal.decided && journal.decided->items.size() != expected) ||
      (journal.applied && journal.applied->items.size() != expected)) {
    return damaged();
  }
  if (!left.empty() && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) return sys(errno);
  return journal;
}

Result<> JournalFile::append(RecordType type, const std::string& payload) {
  std::string body(1, static_cast<char>(type));
  body += payload;
  Encoder record;
  record.fixed32(static_cast<std::uint32_t>(payload.size()));
  record.fixed32(crc32c(body));
  record.raw(body);
  const std::string& bytes = record.str();
  for (std::size_t written = 0; written < bytes.size();) {
    const ssize_t n =
        ::pwrite(fd_.get(), bytes.data() + written, bytes.size() - written, static_cast<off_t>(end_ + written));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int why = errno;
      // A half record at the end would hide the next one.
      if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) return sys(EIO);
      return sys(why);
    }
    written += static_cast<std::size_t>(n);
  }
  end_ += bytes.size();
  return Done{};
}

Result<> JournalFile::sync() {
  if (::fsync(fd_.get()) != 0) return sys(errno);
  return Done{};
}

std::string stagingName(const Prepared& prepared, std::size_t item) {
  char tag[17];
  std::snprintf(tag, sizeof tag, "%016llx", static_cast<unsigned long long>(prepared.tag));
  return kStagingPrefix + std::to_string(prepared.txn) + "-" + tag + "-" + std::to_string(item);
}

std::string bootId() {
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = fd ? ::read(fd.get(), text, sizeof text) : -1;
  // Without /proc every start counts as a new boot: recover looks at everything again, which is harmless.
  if (size <= 0) return {};
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace bough::base_commit

namespace bough {
bool BaseCommit::isStagingName(std::string_view name) { return name.starts_with(base_commit::kStagingPrefix); }
}  // namespace bough
