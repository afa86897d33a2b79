// See requests.h.
#include "native/vmm/control/requests.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "native/common/base64.h"
#include "native/vmm/control/server.h"

namespace bough::vmm {
namespace {

constexpr std::uint64_t kMostRamMiB = std::uint64_t{1} << 20;
constexpr std::size_t kMostFileSystems = 16;
constexpr std::size_t kLongestTag = 36;  // VIRTIO 1.2, 5.11.4

/// Thrown inside this file only.
struct Refused {
  Error error;
};

[[noreturn]] void refuse(std::string message, const char* code = "E_BAD_REQUEST") {
  throw Refused{Error{EINVAL, code, std::move(message)}};
}

std::string quoted(const char* key) { return std::string("`") + key + "`"; }

/// One object of parameters; `fds` are those of the whole message.
class Params {
 public:
  Params(const Json& json, std::vector<UniqueFd>& fds) : json_(json), fds_(fds) {
    if (!json.is_object()) refuse("Parameters must be an object.");
  }

  bool has(const char* key) const { return json_.contains(key); }
  std::string text(const char* key, std::string otherwise = {}) const {
    if (!has(key)) return otherwise;
    if (!json_[key].is_string()) refuse(quoted(key) + " must be a string.");
    return json_[key].get<std::string>();
  }
  bool flag(const char* key, bool otherwise = false) const {
    if (!has(key)) return otherwise;
    if (!json_[key].is_boolean()) refuse(quoted(key) + " must be true or false.");
    return json_[key].get<bool>();
  }
  std::uint64_t number(const char* key, std::uint64_t otherwise, std::uint64_t least, std::uint64_t most) const {
    if (!has(key)) return otherwise;
    if (!json_[key].is_number_unsigned() || json_[key].get<std::uint64_t>() < least ||
        json_[key].get<std::uint64_t>() > most) {
      refuse(quoted(key) + " must be a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
             ".");
    }
    return json_[key].get<std::uint64_t>();
  }
  UniqueFd fd(const char* key) const { return has(key) ? take(json_[key], key) : UniqueFd(); }
  UniqueFd neededFd(const char* key) const {
    if (!has(key)) refuse(quoted(key) + " is missing: give the place of its descriptor.", "E_DESCRIPTORS");
    return take(json_[key], key);
  }
  const Json& list(const char* key) const {
    static const Json kNone = Json::array();
    if (!has(key)) return kNone;
    if (!json_[key].is_array()) refuse(quoted(key) + " must be a list.");
    return json_[key];
  }
  UniqueFd take(const Json& place, const char* key) const {
    if (!place.is_number_unsigned()) refuse(quoted(key) + " must be the place of a descriptor, from 0.");
    const auto index = place.get<std::uint64_t>();
    if (index >= fds_.size()) {
      refuse(quoted(key) + " names descriptor " + std::to_string(index) + ", and " + std::to_string(fds_.size()) +
                 " came.",
             "E_DESCRIPTORS");
    }
    if (!fds_[index]) refuse("Descriptor " + std::to_string(index) + " is named twice.", "E_DESCRIPTORS");
    return std::move(fds_[index]);
  }

 private:
  const Json& json_;
  std::vector<UniqueFd>& fds_;
};

UniqueFd listener(UniqueFd fd) {
  if (!fd) return fd;
  if (const auto ok = checkListener(fd.get()); !ok) throw Refused{ok.error()};
  return fd;
}

HostEnds deviceFds(const Params& params) {
  HostEnds fds;
  fds.console = params.fd("console");
  fds.vsock = listener(params.fd("vsock"));
  for (const Json& place : params.list("fileSystems")) fds.fileSystems.push_back(params.take(place, "fileSystems"));
  return fds;
}

template <typename T>
Result<T> reading(Request& request, const std::function<T(const Params&)>& read) {
  try {
    const Params params(request.params, request.fds);
    T value = read(params);
    if (std::any_of(request.fds.begin(), request.fds.end(), [](const UniqueFd& fd) { return bool(fd); })) {
      refuse("A descriptor came that no parameter of `" + request.method + "` names.", "E_DESCRIPTORS");
    }
    return value;
  } catch (Refused& refused) {
    return std::move(refused.error);
  }
}

ChildRequest child(const Params& params) {
  ChildRequest made;
  made.name = params.text("name");
  if (!made.name.empty() && !validName(made.name)) {
    refuse("`name` must be 1 to 64 letters, digits, dots, hyphens and underscores.");
  }
  made.frozen = params.flag("frozen");
  made.control = listener(params.neededFd("control"));
  made.devices = deviceFds(params);
  // A frozen child runs no device; what it is given for one is closed.
  if (made.frozen) made.devices = {};
  return made;
}

}  // namespace

bool validName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  });
}

Result<BootRequest> readBoot(Request& request) {
  return reading<BootRequest>(request, [&](const Params& params) {
    BootRequest boot;
    boot.kernel = params.neededFd("kernel");
    boot.initramfs = params.fd("initramfs");
    boot.devices.console = params.fd("console");
    boot.devices.vsock = listener(params.fd("vsock"));
    const Json& systems = params.list("fileSystems");
    if (systems.size() > kMostFileSystems) refuse("A machine may have 16 file systems.");
    for (const Json& one : systems) {
      const Params system(one, request.fds);
      std::string tag = system.text("tag");
      if (tag.empty() || tag.size() > kLongestTag || !validName(tag)) {
        refuse("The `tag` of a file system must be 1 to 36 letters, digits, dots, hyphens and underscores.");
      }
      if (std::find(boot.fileSystemTags.begin(), boot.fileSystemTags.end(), tag) != boot.fileSystemTags.end()) {
        refuse("Two file systems have the tag " + tag + ".");
      }
      boot.fileSystemTags.push_back(std::move(tag));
      boot.devices.fileSystems.push_back(system.neededFd("fd"));
    }
    boot.commandLine = params.text("commandLine");
    // Its length is the boot protocol's to judge.
    if (std::any_of(boot.commandLine.begin(), boot.commandLine.end(), [](char c) { return c < ' ' || c > '~'; })) {
      refuse("`commandLine` must be one line of ASCII.");
    }
    boot.ramBytes = params.number("ramMiB", 256, 2, kMostRamMiB) << 20;
    // How many there can be is the machine's to say: E_VCPUS.
    boot.vcpus = static_cast<unsigned>(params.number("vcpus", 1, 0, UINT32_MAX));
    boot.vsockCid = static_cast<std::uint32_t>(params.number("vsockCid", 3, 3, UINT32_MAX - 1));
    boot.hugePages = params.flag("hugePages", true);
    const std::string cpu = params.text("cpu", "auto");
    if (cpu != "auto" && cpu != "full" && cpu != "reduced") {
      refuse("`cpu` must be \"auto\", \"full\" or \"reduced\".");
    }
    boot.cpu = cpu == "auto" ? CpuChoice::kAuto : cpu == "full" ? CpuChoice::kFull : CpuChoice::kReduced;
    return boot;
  });
}

Result<LoadRequest> readLoad(Request& request) {
  return reading<LoadRequest>(request, [](const Params& params) {
    LoadRequest load;
    load.saved = params.neededFd("saved");
    load.diff = params.fd("diff");
    const std::string check = params.text("check", "before");
    if (check != "before" && check != "behind" && check != "none") {
      refuse("`check` must be \"before\", \"behind\" or \"none\".");
    }
    load.check = check == "before" ? CheckRam::kBefore : check == "behind" ? CheckRam::kBehind : CheckRam::kNone;
    load.devices = deviceFds(params);
    load.paused = params.flag("paused");
    return load;
  });
}

Result<ForkRequest> readFork(Request& request) {
  return reading<ForkRequest>(request, [&](const Params& params) {
    ForkRequest fork;
    for (const Json& one : params.list("children")) fork.children.push_back(child(Params(one, request.fds)));
    if (fork.children.empty()) refuse("`children` must name at least one child.");
    fork.verify = params.flag("verify");
    fork.dropMemslots = params.flag("dropMemslots");
    return fork;
  });
}

Result<ForkRequest> readCheckpoint(Request& request) {
  return reading<ForkRequest>(request, [&](const Params& params) {
    ForkRequest fork;
    ChildRequest frozen = child(params);
    frozen.frozen = true;
    frozen.devices = {};
    fork.children.push_back(std::move(frozen));
    return fork;
  });
}

Result<SaveRequest> readSave(Request& request) {
  return reading<SaveRequest>(request, [](const Params& params) {
    SaveRequest save;
    save.target = params.neededFd("fd");
    const std::string kind = params.text("kind", "full");
    if (kind != "full" && kind != "diff") refuse("`kind` must be \"full\" or \"diff\".");
    if (kind == "diff") save.base = params.neededFd("base");
    return save;
  });
}

Result<std::chrono::milliseconds> readPause(Request& request) {
  return reading<std::chrono::milliseconds>(request, [](const Params& params) {
    return std::chrono::milliseconds(params.number("timeoutMs", 10'000, 1, 600'000));
  });
}

Result<std::string> readConsoleInput(Request& request) {
  return reading<std::string>(request, [](const Params& params) {
    if (!params.has("data")) refuse("`data` is missing.");
    auto bytes = fromBase64(params.text("data"));
    if (!bytes) refuse("`data` must be base64.");
    return std::move(*bytes);
  });
}

Result<Done> readNothing(Request& request) {
  return reading<Done>(request, [](const Params&) { return Done{}; });
}

}  // namespace bough::vmm
