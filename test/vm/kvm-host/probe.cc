// Proves that a nested guest runs, and how fast: KVM_CREATE_VM to the first KVM_RUN, exits per second, and a ring-0
// loop. Prints one line of JSON; the exit status is 0 only if every guest instruction did what it should. Used by the
// suite kvm-host: `node scripts/kvm-host.mjs -- build/…/kvm_host_probe`. Source: Documentation/virt/kvm/api.rst.
#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kCode = 0x1000;
constexpr std::size_t kMemory = 0x10000;
constexpr std::uint16_t kPort = 0x3f8;
constexpr int kExits = 2000;
constexpr std::uint32_t kLoops = 20'000'000;

// 16-bit code: `out` once for each count in cx, then a loop of ecx decrements, `out` of its end, `hlt`.
constexpr std::array<std::uint8_t, 22> kProgram{
    0xee,                                // again: out %al,(%dx)
    0xfe, 0xc0,                          // inc %al
    0x49,                                // dec %cx
    0x75, 0xfa,                          // jnz again
    0x66, 0xb9, 0x00, 0x2d, 0x31, 0x01,  // mov $20000000,%ecx
    0x66, 0x49,                          // loop: dec %ecx
    0x75, 0xfc,                          // jnz loop
    0xb0, 0x42,                          // mov $0x42,%al
    0xee,                                // out %al,(%dx)
    0xf4,                                // hlt
    0xeb, 0xfd,                          // and nothing after it
};

double MillisecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

[[noreturn]] void Fail(const char* step) {
  std::fprintf(stderr, "%s failed: %s\n", step, std::strerror(errno));
  std::exit(1);
}

int Checked(int result, const char* step) {
  if (result < 0) Fail(step);
  return result;
}

}  // namespace

int main() {
  const auto begin = Clock::now();
  const int kvm = Checked(open("/dev/kvm", O_RDWR | O_CLOEXEC), "open /dev/kvm");
  const int vm = Checked(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
  void* memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  std::memcpy(static_cast<std::uint8_t*>(memory) + kCode, kProgram.data(), kProgram.size());
  kvm_userspace_memory_region region{};
  region.memory_size = kMemory;
  region.userspace_addr = reinterpret_cast<std::uintptr_t>(memory);
  Checked(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
  const int vcpu = Checked(ioctl(vm, KVM_CREATE_VCPU, 0), "KVM_CREATE_VCPU");
  const int size = Checked(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
  void* shared = mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, vcpu, 0);
  if (shared == MAP_FAILED) Fail("mmap of the vCPU");
  auto* run = static_cast<kvm_run*>(shared);
  kvm_sregs sregs{};
  Checked(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
  sregs.cs.base = 0;
  sregs.cs.selector = 0;
  Checked(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
  kvm_regs regs{};
  regs.rip = kCode;
  regs.rflags = 2;
  regs.rcx = kExits;
  regs.rdx = kPort;
  Checked(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");

  const auto expect_out = [&](std::uint8_t value) {
    Checked(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
    const auto* data = reinterpret_cast<const std::uint8_t*>(run) + run->io.data_offset;
    if (run->exit_reason == KVM_EXIT_IO && run->io.port == kPort && *data == value) return;
    std::fprintf(stderr, "exit %u, not the expected out of %u\n", run->exit_reason, value);
    std::exit(1);
  };
  expect_out(0);
  const double first_run = MillisecondsSince(begin);
  const auto exits_begin = Clock::now();
  for (int i = 1; i < kExits; i++) expect_out(static_cast<std::uint8_t>(i));
  const double exits = MillisecondsSince(exits_begin);
  const auto loop_begin = Clock::now();
  expect_out(0x42);
  const double loop = MillisecondsSince(loop_begin);
  Checked(ioctl(vcpu, KVM_RUN, 0), "KVM_RUN");
  if (run->exit_reason != KVM_EXIT_HLT) {
    std::fprintf(stderr, "exit %u instead of the halt\n", run->exit_reason);
    return 1;
  }
  std::printf(R"({"firstRunMs":%.2f,"exitsPerSecond":%.0f,"loopsPerSecond":%.0f})"
              "\n",
              first_run, kExits / exits * 1000, kLoops / loop * 1000);
}
