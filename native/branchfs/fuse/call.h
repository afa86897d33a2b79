// One request while it is handled, and the operations that handle it. Private to the dispatcher: dispatcher.cc holds
// the table, names.cc, files.cc, folders.cc and attributes.cc the operations.
#pragma once

#include <cstdint>

#include "native/branchfs/file_system.h"
#include "native/branchfs/fuse/held.h"
#include "native/branchfs/fuse/protocol.h"
#include "native/branchfs/fuse/wire.h"

namespace bough::fuse {

struct Call {
  FileSystem& fs;
  Held& held;
  const fuse_in_header& header;
  RequestReader in;
  AnswerWriter out;

  NodeId node() const { return header.nodeid; }
  Caller caller() const { return {header.uid, header.gid, header.pid}; }
};

/// An operation answers 0 or an errno (positive); on 0 `out` holds the answer's body.
using Operation = int (*)(Call&);

// names.cc
int lookup(Call&);
int readlink(Call&);
int mknod(Call&);
int mkdir(Call&);
int symlink(Call&);
int link(Call&);
int unlink(Call&);
int rmdir(Call&);
int rename(Call&);
int rename2(Call&);

// files.cc
int open(Call&);
int create(Call&);
int tmpfile(Call&);
int read(Call&);
int write(Call&);
int release(Call&);
int fsync(Call&);
int fallocate(Call&);
int lseek(Call&);
int copyFileRange(Call&);
int copyFileRange64(Call&);

// folders.cc
int opendir(Call&);
int readdir(Call&);
int readdirplus(Call&);
int releasedir(Call&);
int fsyncdir(Call&);
int syncfs(Call&);

// attributes.cc
int getattr(Call&);
int statx(Call&);
int setattr(Call&);
int setxattr(Call&);
int getxattr(Call&);
int listxattr(Call&);
int removexattr(Call&);
int statfs(Call&);

/// The errno to answer for an Error, never 0.
int number(const Error& error);

// encode.cc
std::uint32_t fileType(Kind kind);  // S_IFREG …
fuse_attr encode(const Attr& attr);
fuse_entry_out encodeEntry(const Looked& looked);
fuse_attr_out encodeAttr(const Looked& looked);
StatxOut encodeStatx(const Looked& looked);
/// Puts the entry and counts its lookup, or the errno of `looked`.
int answerEntry(Call& call, const Result<Looked>& looked);

/// Clears suid and (where the group may execute) sgid, as a write by somebody else demands (inode(7),
/// HANDLE_KILLPRIV_V2).
void killSuidSgid(Call& call, NodeId id, std::optional<Handle> handle);
/// The bits of `mode` that stay when suid and sgid are killed.
std::uint32_t withoutSuidSgid(std::uint32_t mode);

}  // namespace bough::fuse
