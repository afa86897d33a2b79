// What the methods of docs/boughvm-protocol.md ask for, as plain values: parameters checked, descriptors taken from
// their places. Knows no machine. Used by Service; `read` functions never throw.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "native/common/result.h"
#include "native/common/unique_fd.h"
#include "native/vmm/control/message.h"
#include "native/vmm/virtio/device.h"

namespace bough::vmm {

enum class CpuChoice { kAuto, kFull, kReduced };

struct BootRequest {
  UniqueFd kernel;
  UniqueFd initramfs;
  HostEnds devices;
  std::vector<std::string> fileSystemTags;
  std::string commandLine;
  std::size_t ramBytes = std::size_t{256} << 20;
  unsigned vcpus = 1;
  std::uint32_t vsockCid = 3;
  bool hugePages = true;
  CpuChoice cpu = CpuChoice::kAuto;
};

enum class CheckRam { kBefore, kBehind, kNone };

struct LoadRequest {
  UniqueFd saved;
  UniqueFd diff;
  CheckRam check = CheckRam::kBefore;
  HostEnds devices;
  bool paused = false;
};

struct ChildRequest {
  std::string name;  // empty: the machine names it
  bool frozen = false;
  UniqueFd control;
  HostEnds devices;
};

struct ForkRequest {
  std::vector<ChildRequest> children;
  bool verify = false;
  bool dropMemslots = false;
};

struct SaveRequest {
  UniqueFd target;
  /// Of a full save; only what differs from it is written.
  UniqueFd base;
};

// Errors of all: E_BAD_REQUEST, E_DESCRIPTORS. A descriptor that no parameter names is an error, too.
Result<BootRequest> readBoot(Request& request);
Result<LoadRequest> readLoad(Request& request);
Result<ForkRequest> readFork(Request& request);
/// `checkpoint`: a fork with one frozen child.
Result<ForkRequest> readCheckpoint(Request& request);
Result<SaveRequest> readSave(Request& request);
Result<std::chrono::milliseconds> readPause(Request& request);
/// The decoded bytes of console.input.
Result<std::string> readConsoleInput(Request& request);
/// For methods without parameters: checks that no descriptor came.
Result<Done> readNothing(Request& request);

/// What a machine may be called: 1 to 64 letters, digits, dots, hyphens and underscores.
bool validName(const std::string& name);

}  // namespace bough::vmm
