// A small FileSystem in memory, as a partner for the transport's own tests and fuzzing: whole semantics are tested with
// the real one in test/conformance. Counts lookups and handles, so that a test can see that all are given back.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "native/branchfs/file_system.h"

namespace bough::fuse {

class MemoryFs final : public FileSystem {
 public:
  MemoryFs();

  // What a test looks at or sets.
  std::size_t openHandles() const;
  std::uint64_t lookups() const;                                      // all that are not forgotten
  void setContent(const std::string& name, const std::string& data);  // a file of the root, from outside
  void removeFromOutside(const std::string& name);
  void holdReads(bool hold);  // reads wait meanwhile
  std::atomic<int> readsWaiting{0};
  std::atomic<Keep> keep{Keep::Forever};
  std::atomic<int> getattrs{0};

  Result<Looked> lookup(NodeId parent, std::string_view name) override;
  void forget(NodeId id, std::uint64_t n) override;
  Result<Looked> getattr(NodeId id, std::optional<Handle> handle) override;
  Result<Looked> setattr(const Caller&, NodeId id, std::optional<Handle> handle, const SetAttr&) override;
  Result<std::string> readlink(NodeId id) override;
  Result<Looked> mknod(const Caller&, NodeId parent, std::string_view name, Kind, std::uint32_t mode,
                       std::uint64_t rdev) override;
  Result<Looked> mkdir(const Caller&, NodeId parent, std::string_view name, std::uint32_t mode) override;
  Result<Looked> symlink(const Caller&, NodeId parent, std::string_view name, std::string_view target) override;
  Result<Looked> link(NodeId id, NodeId newParent, std::string_view newName) override;
  Result<> unlink(NodeId parent, std::string_view name) override;
  Result<> rmdir(NodeId parent, std::string_view name) override;
  Result<> rename(NodeId parent, std::string_view name, NodeId newParent, std::string_view newName,
                  std::uint32_t flags) override;
  Result<Opened> open(NodeId id, std::uint32_t flags) override;
  Result<std::pair<Looked, Opened>> create(const Caller&, NodeId parent, std::string_view name, std::uint32_t mode,
                                           std::uint32_t flags) override;
  Result<std::pair<Looked, Opened>> tmpfile(const Caller&, NodeId parent, std::uint32_t mode,
                                            std::uint32_t flags) override;
  Result<std::size_t> read(Handle, std::uint64_t offset, std::span<std::byte> out) override;
  Result<std::size_t> write(Handle, std::uint64_t offset, std::span<const std::byte> data, bool append) override;
  Result<> fsync(Handle, bool dataOnly) override;
  Result<> fallocate(Handle, std::uint32_t mode, std::uint64_t offset, std::uint64_t length) override;
  Result<std::uint64_t> lseek(Handle, std::uint64_t offset, int whence) override;
  Result<std::size_t> copyRange(Handle from, std::uint64_t fromOffset, Handle to, std::uint64_t toOffset,
                                std::size_t length) override;
  void release(Handle) override;
  Result<Opened> opendir(NodeId id) override;
  Result<> readdir(Handle, std::uint64_t cookie, bool plus, const std::function<bool(DirItem&)>& take) override;
  Result<> fsyncdir(NodeId id) override;
  void releasedir(Handle) override;
  Result<std::string> getxattr(NodeId id, std::string_view name) override;
  Result<std::vector<std::string>> listxattr(NodeId id) override;
  Result<> setxattr(NodeId id, std::string_view name, std::string_view value, int flags) override;
  Result<> removexattr(NodeId id, std::string_view name) override;
  Result<struct statvfs> statfs() override;

 private:
  struct File {
    Attr attr;
    std::string data;  // or a symlink's target
    std::map<std::string, NodeId, std::less<>> names;
    std::map<std::string, std::string, std::less<>> xattrs;
  };
  File* find(NodeId id);
  File* folder(NodeId id);
  Result<Looked> add(const Caller&, NodeId parent, std::string_view name, Kind, std::uint32_t mode);
  Looked look(const File& file) { return {file.attr, keep.load()}; }
  Looked lookAndCount(const File& file);
  Handle newHandle(NodeId id);
  File* byHandle(Handle handle);
  static void resize(File& file, std::uint64_t size);

  mutable std::mutex lock_;
  std::condition_variable changed_;
  bool readsHeld_ = false;
  std::map<NodeId, File> files_;
  std::map<NodeId, std::uint64_t> lookups_;
  std::map<Handle, NodeId> handles_;
  NodeId next_ = 2;
  Handle nextHandle_ = 1;
};

}  // namespace bough::fuse
