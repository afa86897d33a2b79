// See process.h: from the pipes into the ring, from the ring to whoever is attached.
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "native/common/base64.h"
#include "native/guest/init/process.h"

namespace bough::guest {
namespace {

constexpr std::size_t kReadPiece = 64 * 1024;
constexpr std::size_t kEventPiece = 48 * 1024;
/// What one process may have left in a pipe when it ended (fcntl F_SETPIPE_SZ lets it be that long).
constexpr std::size_t kLastWords = 1 << 20;

constexpr const char* nameOf(Stream stream) {
  switch (stream) {
    case Stream::Out:
      return "stdout";
    case Stream::Err:
      return "stderr";
    case Stream::Terminal:
      break;
  }
  return "terminal";
}

/// By hand: base64 needs no escaping, and this is where all the bytes go through.
std::string outputLine(ProcessNumber process, const Piece& piece) {
  std::string line = R"({"event":"output","process":)";
  line += std::to_string(process);
  line += R"(,"stream":")";
  line += nameOf(piece.stream);
  line += R"(","at":)";
  line += std::to_string(piece.at);
  line += R"(,"data":")";
  line += toBase64(piece.bytes);
  line += "\"}\n";
  return line;
}

}  // namespace

void Process::addSource(UniqueFd fd, Stream stream) {
  auto source = std::make_unique<Source>();
  source->fd = std::move(fd);
  source->stream = stream;
  sources_.push_back(std::move(source));
}

/// Watches where there is room. A full ring takes the watch away as a whole: epoll would tell of a hang-up even when it
/// is asked for nothing.
void Process::watchSources() {
  const bool room = ring_.room() > 0;
  for (const auto& source : sources_) {
    if (room && source->token == 0) {
      source->token = loop_.watch(source->fd.get(), EPOLLIN, [this, from = source.get()](std::uint32_t) {
        read(*from, std::min(kReadPiece, ring_.room()));
        pump();
      });
    } else if (!room && source->token != 0) {
      loop_.unwatch(source->token);
      source->token = 0;
    }
  }
}

bool Process::read(Source& source, std::size_t most) {
  if (most == 0) return false;
  std::array<char, kReadPiece> piece;  // NOLINT(cppcoreguidelines-pro-type-member-init): read fills it
  const ssize_t n = ::read(source.fd.get(), piece.data(), std::min(most, piece.size()));
  if (n > 0) {
    ring_.append(source.stream, {piece.data(), static_cast<std::size_t>(n)});
    return true;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  // End of the pipe, or EIO: nobody has the terminal open any more.
  loop_.unwatch(source.token);
  const bool wasTerminal = source.stream == Stream::Terminal;
  std::erase_if(sources_, [&source](const auto& each) { return each.get() == &source; });
  if (wasTerminal) {
    closeInput();
    writeInput();  // who waits for it hears of that
  }
  return false;
}

void Process::drainSources() {
  std::vector<Source*> all;
  all.reserve(sources_.size());
  for (const auto& source : sources_) all.push_back(source.get());
  for (Source* source : all) {
    const std::uint64_t end = ring_.to() + kLastWords;
    while (ring_.to() < end && read(*source, kReadPiece)) continue;
  }
}

Result<Json> Process::attach(const std::shared_ptr<Connection>& connection, const AttachRequest& request) {
  const std::uint64_t from = request.from.value_or(ring_.from());
  if (from > ring_.to()) {
    return Error{EINVAL, "E_GAP", "The output has only " + std::to_string(ring_.to()) + " bytes so far."};
  }
  detach(connection.get());
  const std::uint64_t first = std::max(from, ring_.from());
  // What it asks to go on from has arrived there.
  attachments_.push_back(Attachment{.connection = connection, .next = first, .acked = first, .window = request.window});
  releaseAcked();
  Json json{{"from", first},
            {"to", ring_.to()},
            {"lost", first - from},
            {"received", received_},
            {"ended", hasEnded() && outputEnded()}};
  if (hasEnded()) json["exit"] = exitJson();
  return json;
}

void Process::detach(const Connection* connection) {
  std::erase_if(attachments_, [connection](const Attachment& each) {
    const auto one = each.connection.lock();
    return one == nullptr || one.get() == connection;
  });
}

bool Process::isAttached(const Connection* connection) const {
  return std::any_of(attachments_.begin(), attachments_.end(),
                     [connection](const Attachment& each) { return each.connection.lock().get() == connection; });
}

void Process::ack(const Connection* connection, std::uint64_t to) {
  for (Attachment& attachment : attachments_) {
    if (attachment.connection.lock().get() != connection) continue;
    attachment.acked = std::clamp(to, attachment.acked, attachment.next);
  }
  releaseAcked();
  pump();
}

void Process::releaseAcked() {
  if (attachments_.empty()) return;
  std::uint64_t least = UINT64_MAX;
  for (const Attachment& attachment : attachments_) least = std::min(least, attachment.acked);
  ring_.release(least);
}

void Process::pump() {
  for (Attachment& attachment : attachments_) pump(attachment);
  watchSources();
}

void Process::pump(Attachment& attachment) {
  const auto connection = attachment.connection.lock();
  if (!connection) return;
  const auto tellExit = [&] {
    if (attachment.toldExit || !hasEnded() || attachment.next < exitTo_) return;
    attachment.toldExit = true;
    connection->send(toLine(Json{{"event", "exit"}, {"process", number_}, {"exit", exitJson()}, {"to", exitTo_}}));
  };
  tellExit();
  while (connection->wantsMore() && attachment.next < attachment.acked + attachment.window) {
    std::uint64_t most = std::min<std::uint64_t>(kEventPiece, attachment.acked + attachment.window - attachment.next);
    if (hasEnded() && !attachment.toldExit) most = std::min(most, exitTo_ - attachment.next);
    const Piece piece = ring_.read(attachment.next, static_cast<std::size_t>(most));
    if (piece.bytes.empty()) break;
    attachment.next = piece.at + piece.bytes.size();
    connection->send(outputLine(number_, piece));
    tellExit();
  }
  if (attachment.toldExit && !attachment.toldEnd && outputEnded() && attachment.next >= ring_.to()) {
    attachment.toldEnd = true;
    connection->send(toLine(Json{{"event", "end"}, {"process", number_}, {"to", ring_.to()}}));
  }
}

}  // namespace bough::guest
