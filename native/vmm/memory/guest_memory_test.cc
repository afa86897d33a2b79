// Only RAM is reached, whatever address and length are asked for; RAM from a file is a copy of it.
#include "native/vmm/memory/guest_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

#include "native/common/unique_fd.h"

using namespace bough;
using namespace bough::vmm;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool readable(const GuestMemory& memory, std::uint64_t address, std::size_t size) {
  std::string bytes(size, 'x');
  return memory.read(GuestAddress{address}, std::as_writable_bytes(std::span(bytes)));
}

}  // namespace

TEST_CASE("RAM is zero, keeps what is written, and ends where it ends") {
  const auto memory = GuestMemory::anonymous(4 * kMiB, false);
  REQUIRE(memory);
  CHECK(memory->load<std::uint64_t>(GuestAddress{0x1234}) == 0);
  CHECK(memory->store<std::uint32_t>(GuestAddress{0x1235}, 0xDEADBEEF));
  CHECK(memory->load<std::uint32_t>(GuestAddress{0x1235}) == 0xDEADBEEF);
  CHECK(memory->fill(GuestAddress{0x1236}, 2, std::byte{0}));
  CHECK(memory->load<std::uint32_t>(GuestAddress{0x1235}) == 0xDE0000EF);

  const std::uint64_t end = 4 * kMiB;
  CHECK(readable(*memory, end - 8, 8));
  CHECK_FALSE(readable(*memory, end - 7, 8));
  CHECK_FALSE(readable(*memory, end, 1));
  CHECK_FALSE(readable(*memory, ~std::uint64_t{0}, 1));
  CHECK_FALSE(readable(*memory, ~std::uint64_t{0} - 3, 8));
  CHECK_FALSE(memory->contains(GuestAddress{8}, ~std::size_t{0}));
  CHECK_FALSE(memory->store<std::uint64_t>(GuestAddress{end - 7}, 1));
  CHECK(memory->load<std::uint32_t>(GuestAddress{end - 4}) == 0);
  CHECK_FALSE(memory->fill(GuestAddress{end - 1}, 2, std::byte{1}));
  std::vector<iovec> list;
  CHECK_FALSE(memory->appendTo(list, GuestAddress{end - 1}, 2));
  CHECK(list.empty());
  CHECK(memory->appendTo(list, GuestAddress{end - 2}, 2));
  CHECK(list.size() == 1);
}

TEST_CASE("ring indices are aligned and in RAM") {
  const auto memory = GuestMemory::anonymous(2 * kMiB, true);
  REQUIRE(memory);
  CHECK(memory->storeRelease16(GuestAddress{0x102}, 0xABCD));
  CHECK(memory->loadAcquire16(GuestAddress{0x102}) == 0xABCD);
  CHECK_FALSE(memory->loadAcquire16(GuestAddress{0x101}));
  CHECK_FALSE(memory->storeRelease16(GuestAddress{0x101}, 1));
  CHECK_FALSE(memory->loadAcquire16(GuestAddress{2 * kMiB}));
}

TEST_CASE("large RAM has a hole below 4 GiB, and nothing reaches across it") {
  const auto memory = GuestMemory::anonymous(std::size_t{4} << 30, false);
  REQUIRE(memory);
  REQUIRE(memory->regions().size() == 2);
  CHECK(raw(memory->regions()[1].start) == GuestMemory::kHighStart);
  CHECK(memory->regions()[0].size + memory->regions()[1].size == memory->size());
  CHECK(memory->store<std::uint8_t>(GuestAddress{GuestMemory::kLowEnd - 1}, 7));
  CHECK_FALSE(memory->load<std::uint8_t>(GuestAddress{GuestMemory::kLowEnd}));
  CHECK_FALSE(readable(*memory, GuestMemory::kLowEnd - 1, 2));
  CHECK(memory->store<std::uint8_t>(GuestAddress{GuestMemory::kHighStart}, 9));
  CHECK(memory->host()[GuestMemory::kLowEnd - 1] == std::byte{7});
  CHECK(memory->host()[GuestMemory::kLowEnd] == std::byte{9});
}

TEST_CASE("sizes that no machine has are refused") {
  for (const std::size_t size : {std::size_t{0}, kMiB, 3 * kMiB, std::size_t{2} << 40}) {
    const auto memory = GuestMemory::anonymous(size, false);
    REQUIRE_FALSE(memory);
    CHECK(memory.error().code == "E_RAM_SIZE");
  }
}

TEST_CASE("RAM from a file starts as the file, which stays as it is") {
  UniqueFd file(::memfd_create("ram", MFD_CLOEXEC));
  REQUIRE(file);
  REQUIRE(::ftruncate(file.get(), static_cast<off_t>(2 * kMiB + 4096)) == 0);
  REQUIRE(::pwrite(file.get(), "saved", 5, 4096 + 100) == 5);
  auto memory = GuestMemory::fromFile(file.get(), 4096, 2 * kMiB);
  REQUIRE(memory);
  GuestMemory moved = std::move(*memory);
  CHECK(moved.load<char>(GuestAddress{100}) == 's');
  CHECK(moved.store<char>(GuestAddress{100}, 'X'));
  char first = 0;
  REQUIRE(::pread(file.get(), &first, 1, 4096 + 100) == 1);
  CHECK(first == 's');
}
