// Open handles of a View: files with the descriptor of their data, folders with the names they show. Used by view_*.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "native/branchfs/model.h"
#include "native/branchfs/objects.h"

namespace bough {

/// Remembers the node and a descriptor of the data it had at the last use. A copy-up by another handle, a branch point
/// or a commit gives the node other data; the next use sees that the content is another and takes a new descriptor.
class OpenFile {
 public:
  OpenFile(NodeId node, std::uint32_t openFlags) : id(node), flags(openFlags) {}

  /// The remembered descriptor if it is of this content; null otherwise.
  SharedFd remembered(const Content& content) {
    std::lock_guard guard(lock_);
    bool same =
        content.where == content_.where &&
        (content.where == Content::Where::Object ? content.object == content_.object : content.base == content_.base);
    return same ? fd_ : nullptr;
  }
  /// Whatever descriptor there is, with its content: all that is left of a file that is nowhere any more.
  std::pair<Content, SharedFd> last() {
    std::lock_guard guard(lock_);
    return {content_, fd_};
  }
  void remember(const Content& content, const SharedFd& fd) {
    std::lock_guard guard(lock_);
    content_ = content;
    fd_ = fd;
  }

  const NodeId id;
  const std::uint32_t flags;  // of open(2)

 private:
  std::mutex lock_;
  Content content_;  // with its lease: what a handle has open is not garbage
  SharedFd fd_;
};

/// The names of a folder as they were when reading started; cookies count them, so they stay right whatever changes.
struct OpenFolder {
  struct Name {
    std::string name;
    NodeId id = 0;
    Kind kind = Kind::File;
  };
  explicit OpenFolder(NodeId node) : id(node) {}

  const NodeId id;
  std::mutex lock;
  bool read = false;
  std::vector<Name> names;  // "." and ".." first
};

}  // namespace bough
