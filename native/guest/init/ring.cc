// See ring.h.
#include "native/guest/init/ring.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::size_t kFirstStore = 4096;
constexpr std::size_t kBytesPerRun = 16;

/// Copies between a circular store and plain bytes; at most two pieces.
template <typename Copy>
void eachPiece(std::size_t size, std::uint64_t at, std::size_t count, Copy copy) {
  for (std::size_t done = 0; done < count;) {
    const auto place = static_cast<std::size_t>((at + done) % size);
    const std::size_t piece = std::min(count - done, size - place);
    copy(place, done, piece);
    done += piece;
  }
}

}  // namespace

OutputRing::OutputRing(std::size_t capacity, WhenFull whenFull)
    : capacity_(capacity), maxRuns_(std::max<std::size_t>(capacity / kBytesPerRun, 1)), whenFull_(whenFull) {}

std::size_t OutputRing::room() const {
  if (whenFull_ == WhenFull::Drop) return capacity_;
  const auto held = static_cast<std::size_t>(to_ - std::max(released_, from_));
  if (held >= capacity_) return 0;
  const bool runsHeld = runs_.size() >= maxRuns_ && runs_.front().end > released_;
  return runsHeld ? 0 : capacity_ - held;
}

void OutputRing::append(Stream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  if (whenFull_ == WhenFull::Drop && bytes.size() > capacity_) {
    const std::size_t gone = bytes.size() - capacity_;
    bytes.remove_prefix(gone);
    to_ += gone;
    from_ = to_;
    runs_.clear();
  }
  evict(bytes.size());
  grow(kept() + bytes.size());
  eachPiece(store_.size(), to_, bytes.size(), [&](std::size_t place, std::size_t done, std::size_t piece) {
    std::memcpy(store_.data() + place, bytes.data() + done, piece);
  });
  to_ += bytes.size();
  if (!runs_.empty() && runs_.back().stream == stream) {
    runs_.back().end = to_;
  } else {
    runs_.push_back(Run{.end = to_, .stream = stream});
  }
}

void OutputRing::release(std::uint64_t to) { released_ = std::max(released_, std::min(to, to_)); }

Piece OutputRing::read(std::uint64_t from, std::size_t most) const {
  from = std::max(from, from_);
  if (from >= to_) return Piece{.stream = Stream::Out, .at = to_, .bytes = {}};
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), from,
                                    [](std::uint64_t at, const Run& candidate) { return at < candidate.end; });
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, run->end - from));
  Piece piece{.stream = run->stream, .at = from, .bytes = std::string(count, '\0')};
  eachPiece(store_.size(), from, count, [&](std::size_t place, std::size_t done, std::size_t part) {
    std::memcpy(piece.bytes.data() + done, store_.data() + place, part);
  });
  return piece;
}

/// Makes room for `incoming` bytes and one run, as far as what is kept may go.
void OutputRing::evict(std::size_t incoming) {
  const std::uint64_t mayGo = whenFull_ == WhenFull::Drop ? to_ : std::max(released_, from_);
  if (kept() + incoming > capacity_) {
    const std::uint64_t wanted = to_ + incoming - capacity_;
    from_ = std::max(from_, std::min(wanted, mayGo));
  }
  while (!runs_.empty() && runs_.front().end <= from_) runs_.pop_front();
  while (runs_.size() >= maxRuns_ && runs_.front().end <= mayGo) {
    from_ = runs_.front().end;
    runs_.pop_front();
  }
}

void OutputRing::grow(std::size_t needed) {
  if (needed <= store_.size()) return;
  std::size_t size = std::max(store_.size(), kFirstStore);
  while (size < needed) size *= 2;
  std::vector<char> bigger(size);
  eachPiece(store_.empty() ? 1 : store_.size(), from_, kept(), [&](std::size_t place, std::size_t done, std::size_t n) {
    eachPiece(size, from_ + done, n, [&](std::size_t to, std::size_t offset, std::size_t part) {
      std::memcpy(bigger.data() + to, store_.data() + place + offset, part);
    });
  });
  store_ = std::move(bigger);
}

}  // namespace bough::guest
