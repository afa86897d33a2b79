// See host.h.
#include "test/vm/harness/host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "test/vm/harness/control.h"

namespace bough::vmtest {

namespace fs = std::filesystem;

namespace {

bool isSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && std::string(value) == "1";
}

fs::path ownFolder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

/// Orphans below this process become its own, so that none is overlooked.
const bool adopts = ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;

struct Process {
  pid_t parent = 0;
  char state = '?';
};

std::map<pid_t, Process> allProcesses() {
  std::map<pid_t, Process> all;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string line;
    std::getline(file, line);
    // proc(5): the name may hold spaces and brackets, so everything is counted from its end.
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(line.substr(end + 1));
    Process process;
    rest >> process.state >> process.parent;
    all[std::stoi(name)] = process;
  }
  return all;
}

std::optional<std::size_t> fieldOf(const std::string& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoul(line.substr(field.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

std::string boughvmPath() {
  const char* path = std::getenv("BOUGHVM");
  return path != nullptr ? path : (ownFolder() / "boughvm").string();
}

std::string guestPath(const std::string& name) { return (ownFolder() / "vm-guests" / name).string(); }

UniqueFd openFile(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw std::runtime_error(path + ": " + std::strerror(errno));
  return fd;
}

UniqueFd temporaryFile() {
  const std::string folder = fs::temp_directory_path();
  UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd) throw std::runtime_error(folder + ": " + std::strerror(errno));
  return fd;
}

UniqueFd fileOf(const std::string& bytes) {
  UniqueFd fd = temporaryFile();
  if (::pwrite(fd.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error(std::string("a temporary file: ") + std::strerror(errno));
  }
  return fd;
}

std::string readAll(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) throw std::runtime_error("fstat");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count <= 0) throw std::runtime_error("a file is shorter than it says");
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

bool emulated() { return isSet("BOUGH_VM_EMULATED"); }
bool sanitized() { return isSet("BOUGH_VM_ASAN"); }

std::vector<pid_t> processesBelow(pid_t root) {
  const std::map<pid_t, Process> all = allProcesses();
  std::vector<pid_t> below;
  for (const auto& [pid, process] : all) {
    if (process.state == 'Z' || process.state == 'X') continue;
    for (auto at = all.find(process.parent); at != all.end(); at = all.find(at->second.parent)) {
      if (at->first != root) continue;
      below.push_back(pid);
      break;
    }
  }
  return below;
}

std::vector<pid_t> processesBelow() { return processesBelow(::getpid()); }

std::vector<pid_t> waitForNoProcess() {
  const auto end = Clock::now() + Seconds(30);
  for (;;) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<pid_t> left = processesBelow();
    if (left.empty() || Clock::now() > end) return left;
    // There is no event for "no descendant of mine is left".
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::optional<pid_t> processOf(int pidfd) {
  std::ifstream file("/proc/self/fdinfo/" + std::to_string(pidfd));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Pid:")) continue;
    const pid_t pid = std::stoi(line.substr(4));
    if (pid > 0) return pid;
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> descriptorsOf(pid_t pid) {
  std::vector<std::string> list;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", failed)) {
    std::error_code gone;
    list.push_back(fs::read_symlink(entry.path(), gone));
  }
  if (failed) return std::nullopt;
  return list;
}

std::optional<std::size_t> memoryKiB(pid_t pid, const std::string& field) {
  return fieldOf("/proc/" + std::to_string(pid) + "/smaps_rollup", field);
}

std::size_t availableKiB() { return fieldOf("/proc/meminfo", "MemAvailable").value_or(0); }

}  // namespace bough::vmtest
