// The shapes of the control protocol as JSON (docs/boughvm-protocol.md). See service.h.
#include <unistd.h>

#include "native/common/version.h"
#include "native/vmm/control/service.h"

namespace bough::vmm {

const char* word(MachineState state) {
  switch (state) {
    case MachineState::kRunning:
      return "running";
    case MachineState::kPaused:
      return "paused";
    case MachineState::kFrozen:
      return "frozen";
    case MachineState::kStopped:
      return "stopped";
  }
  return "stopped";
}

Json toJson(const PauseTimes& times) {
  return {{"parkUs", times.park.count()}, {"drainUs", times.drain.count()},   {"saveUs", times.save.count()},
          {"forkUs", times.fork.count()}, {"resumeUs", times.resume.count()}, {"totalUs", times.total.count()}};
}

Json toJson(const MachineConfig& config) {
  return {{"ramMiB", config.ramBytes >> 20}, {"vcpus", config.vcpus},
          {"hugePages", config.hugePages},   {"cpu", config.cpu == CpuProfile::kReduced ? "reduced" : "full"},
          {"vsockCid", config.vsockCid},     {"fileSystems", config.fileSystems}};
}

Json toJson(const JailReport& jail) {
  return {{"user", jail.user},          {"pid", jail.pid},       {"mount", jail.mount},
          {"network", jail.network},    {"ipc", jail.ipc},       {"uts", jail.uts},
          {"procfs", jail.procFd >= 0}, {"filter", jail.filter}, {"missing", jail.missing}};
}

Json Service::lastPause() const { return toJson(machine_->metrics().lastPause); }

Json Service::statusJson() const {
  Json children = Json::array();
  for (const Child& child : children_.living()) {
    children.push_back({{"name", child.name}, {"pid", child.pid}, {"frozen", child.frozen}});
  }
  Json status = {{"name", options_.name},
                 {"pid", ::getpid()},
                 {"version", kVersion},
                 {"state", machine_ ? word(machine_->state()) : "empty"},
                 {"children", std::move(children)},
                 {"forksInFlight", inFlight()},
                 {"maxForks", options_.maxForks},
                 {"jail", toJson(options_.jail)}};
  if (machine_) {
    status["config"] = toJson(machine_->config());
    status["cpuDigest"] = machine_->cpuDigest();
    if (const std::string reason = machine_->stopReason(); !reason.empty()) status["stopReason"] = reason;
  }
  return status;
}

}  // namespace bough::vmm
