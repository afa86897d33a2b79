// How a process gets its machine: boot and load. See service.h.
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "native/common/log.h"
#include "native/vmm/control/service.h"
#include "native/vmm/saved/read.h"

namespace bough::vmm {
namespace {

/// In a process that needs two descriptors only: lets go of all others but the standard ones.
void closeAllBut(int a, int b) {
  const auto low = static_cast<unsigned>(std::min(a, b));
  const auto high = static_cast<unsigned>(std::max(a, b));
  const auto closeFrom = [](unsigned first, unsigned last) {
    if (first <= last) ::syscall(SYS_close_range, first, last, 0);
  };
  closeFrom(3, low - 1);
  closeFrom(low + 1, high - 1);
  closeFrom(high + 1, ~0U);
}

}  // namespace

Result<Done> Service::mayStart() const {
  if (machine_) {
    return Error{EEXIST, "E_MACHINE_EXISTS", "This process has its machine: start another boughvm for another one."};
  }
  return Done{};
}

Result<Json> Service::boot(Request& request) {
  BOUGH_TRY(mayStart());
  BOUGH_ASSIGN(BootRequest asked, readBoot(request));
  MachineConfig config;
  config.ramBytes = asked.ramBytes;
  config.vcpus = asked.vcpus;
  config.hugePages = asked.hugePages;
  config.commandLine = std::move(asked.commandLine);
  config.vsockCid = asked.vsockCid;
  config.fileSystems = std::move(asked.fileSystemTags);
  const bool reduced = asked.cpu == CpuChoice::kReduced || (asked.cpu == CpuChoice::kAuto && kvm_->software());
  config.cpu = reduced ? CpuProfile::kReduced : CpuProfile::kFull;
  // A machine that cannot be started leaves this process as it was.
  BOUGH_ASSIGN(auto kvm, kvm_->duplicate());
  BOUGH_ASSIGN(auto machine, Machine::boot(std::move(kvm), std::move(config), asked.kernel.get(), asked.initramfs.get(),
                                           std::move(asked.devices), loop_));
  adoptMachine(std::move(machine));
  return statusJson();
}

Result<Json> Service::load(Request& request) {
  BOUGH_TRY(mayStart());
  BOUGH_ASSIGN(LoadRequest asked, readLoad(request));
  BOUGH_ASSIGN(SavedFile full, SavedFile::open(std::move(asked.saved)));
  std::optional<SavedFile> diff;
  if (asked.diff) {
    BOUGH_ASSIGN(SavedFile opened, SavedFile::open(std::move(asked.diff)));
    diff.emplace(std::move(opened));
  }
  const SavedFile& newest = diff ? *diff : full;
  MachineConfig config;
  Decoder decoder(newest.config());
  if (!MachineConfig::decode(decoder, config) || !decoder.atEnd() || config.ramBytes != newest.head().ramBytes) {
    return Error{EINVAL, "E_SAVED_DAMAGED", "The saved machine's configuration cannot be right: use another save."};
  }
  if (asked.devices.fileSystems.size() != config.fileSystems.size()) {
    return Error{EINVAL, "E_DESCRIPTORS",
                 "The saved machine has " + std::to_string(config.fileSystems.size()) + " file systems, and " +
                     std::to_string(asked.devices.fileSystems.size()) + " descriptors came: give one for each."};
  }
  BOUGH_ASSIGN(GuestMemory memory, loadRam(full, diff ? &*diff : nullptr, asked.check == CheckRam::kBefore));
  // Before there is a VM, which a process that only reads must not hold.
  if (asked.check == CheckRam::kBehind) BOUGH_TRY(checkBehind(full.takeFd()));
  BOUGH_ASSIGN(auto kvm, kvm_->duplicate());
  BOUGH_ASSIGN(auto machine,
               Machine::load(std::move(kvm), std::move(memory), newest.state(), std::move(asked.devices), loop_));
  if (machine->cpuDigest() != newest.head().cpuDigest) {
    return Error{ENOTSUP, "E_SAVED_CPU", "The machine was saved on another CPU: load it where it was saved."};
  }
  adoptMachine(std::move(machine));
  if (!asked.paused) BOUGH_TRY(machine_->resume());
  return statusJson();
}

Result<Done> Service::checkBehind(UniqueFd file) {
  BOUGH_ASSIGN(Pipe pipe, Pipe::make());
  const pid_t pid = ::fork();
  if (pid < 0) return Error{errno, "E_FORK", "The process that checks the saved file cannot be made: try again."};
  if (pid == 0) {
    closeAllBut(file.get(), pipe.write.get());
    const auto checked = checkRamOf(file.get());
    const std::string said = checked ? "ok" : checked.error().message;
    [[maybe_unused]] const ssize_t written = ::write(pipe.write.get(), said.data(), said.size());
    ::_exit(0);
  }
  pipe.write.reset();
  children_.addUntold({"check", pid, UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))), false});
  BOUGH_ASSIGN(ramCheck_, PipeText::read(loop_, std::move(pipe.read), [this](const std::string& said) {
                 if (said == "ok") return;
                 const std::string why = said.empty() ? "the process that checks the saved file was killed" : said;
                 logLine("E_SAVED_DAMAGED: " + why);
                 server_->event({{"event", "damaged"}, {"code", "E_SAVED_DAMAGED"}, {"message", why}});
                 finish(ExitCode::kDamaged);
               }));
  return Done{};
}

}  // namespace bough::vmm
