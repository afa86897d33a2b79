// One connection of the control socket: cuts what comes into lines, each with the descriptors that came with its bytes,
// and sends lines with descriptors without ever blocking. Used by Server.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "native/common/unique_fd.h"
#include "native/vmm/control/message.h"

namespace bough::vmm {

struct IncomingLine {
  std::string text;
  std::vector<UniqueFd> fds;
};

class Channel {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{1} << 20;
  static constexpr std::size_t kMaxUnread = std::size_t{8} << 20;
  static constexpr std::size_t kMaxDescriptors = 2048;

  /// `socket`: a connected unix stream socket.
  explicit Channel(UniqueFd socket);

  int fd() const { return socket_.get(); }

  enum class Input { kOpen, kClosed, kTooBig };
  /// Reads what is there. Lines that were complete before the end are in `lines` whatever it answers: kClosed, the
  /// client has gone; kTooBig, a line or its descriptors are too many. Descriptors that this process could not take
  /// (its limit) are missing from their line.
  Input receive(std::vector<IncomingLine>& lines);

  /// Queues a line and sends what the socket takes. False: the client has gone or does not read, and the channel is
  /// useless.
  bool send(Outgoing message);
  /// Sends more of the queue.
  bool flush();
  bool hasUnsent() const { return !outgoing_.empty(); }

 private:
  UniqueFd socket_;
  std::string partial_;
  std::vector<UniqueFd> partialFds_;
  std::deque<Outgoing> outgoing_;
  /// Bytes of the first queued line that are sent; its descriptors went with the first of them.
  std::size_t sent_ = 0;
  std::size_t unsent_ = 0;
};

}  // namespace bough::vmm
