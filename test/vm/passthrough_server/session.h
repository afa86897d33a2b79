// One guest's connection: reads FUSE requests from it and answers them from the tree (docs/fs-socket.md). It has no
// handles (the guest is told to go without OPEN and OPENDIR), so a forked guest's connection needs nothing of its
// parent's.
#pragma once

#include <linux/fuse.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tree.h"

namespace passthrough {

class Session {
 public:
  Session(Tree& tree, UniqueFd socket) : tree_(tree), socket_(std::move(socket)) {}

  /// Until the other side closes, or breaks the format.
  void run();

 private:
  bool receive(std::span<std::byte> to);
  /// False: the connection is over.
  bool handle(const fuse_in_header& header, std::string_view body, std::uint32_t room);
  bool answer(std::uint64_t unique, std::string_view data);
  bool answerError(std::uint64_t unique, int errnum);

  // Each gives the answer's data, or a negative errno.
  int init(std::string_view body, std::string& out);
  int lookup(NodeId parent, std::string_view body, std::string& out);
  int getAttributes(NodeId node, std::string& out);
  int read(NodeId node, std::string_view body, std::size_t room, std::string& out);
  int readFolder(NodeId node, std::string_view body, bool plus, std::size_t room, std::string& out);
  int statistics(std::string& out);
  int dispatch(const fuse_in_header& header, std::string_view body, std::size_t room, std::string& out);

  const std::vector<Entry>* listing(NodeId node, bool fresh);

  Tree& tree_;
  UniqueFd socket_;
  std::string request_;
  /// Files read lately, folders listed lately; dropped when there are too many.
  std::unordered_map<NodeId, UniqueFd> files_;
  std::unordered_map<NodeId, std::vector<Entry>> listings_;
};

}  // namespace passthrough
