// The first process of the emulated KVM host after its init script: runs commands that come in frames over one
// virtio-serial port, many at once, and sends back their output and how they ended. It has the host's root as its root.
// Used by scripts/kvm-host/machine.mjs, which speaks the other end; the frames are described there.
#include <fcntl.h>
#include <poll.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

enum class FrameType : std::uint8_t {
  // to this agent
  kStart = 1,     // argument strings, each ended by NUL: working directory, count of variables, variables, arguments
  kInput = 2,     // bytes for standard input
  kInputEnd = 3,  // end of standard input
  kSignal = 4,    // one byte: the number of a signal for the whole process group
  // from this agent
  kReady = 16,
  kOutput = 17,
  kError = 18,
  kEnd = 19,  // two bytes: exit status, signal (0: none)
};

constexpr std::size_t kHeaderSize = 9;
constexpr std::size_t kChunk = 65536;

struct Command {
  pid_t pid = -1;
  int input = -1;
  int output = -1;
  int error = -1;
  std::string pending;  // input that the pipe did not take yet
  bool input_ended = false;
};

std::map<std::uint32_t, Command> commands;
int port = -1;

// The other end is gone: nobody can use this machine any more.
[[noreturn]] void PowerOff() {
  sync();
  reboot(RB_POWER_OFF);
  _exit(0);
}

void Close(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

void Send(std::uint32_t id, FrameType type, const void* data, std::uint32_t size) {
  std::string frame(kHeaderSize, '\0');
  std::memcpy(frame.data(), &id, 4);
  frame[4] = static_cast<char>(type);
  std::memcpy(frame.data() + 5, &size, 4);
  frame.append(static_cast<const char*>(data), size);
  std::size_t done = 0;
  while (done < frame.size()) {
    const ssize_t n = write(port, frame.data() + done, frame.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      pollfd ready{port, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (n < 0 && errno != EINTR) {
      PowerOff();
    }
  }
}

void SendEnd(std::uint32_t id, int status, int signal) {
  const std::array<std::uint8_t, 2> end{static_cast<std::uint8_t>(status), static_cast<std::uint8_t>(signal)};
  Send(id, FrameType::kEnd, end.data(), end.size());
}

// As a shell tells it: 127 if there is no such program, 126 if it cannot be run.
[[noreturn]] void Execute(const std::string& folder, std::vector<char*>& variables, std::vector<char*>& arguments) {
  const auto fail = [&](const std::string& what) {
    const int error = errno;
    const std::string text = "kvm-host: " + what + ": " + std::strerror(error) + "\n";
    if (write(2, text.data(), text.size()) < 0) _exit(125);
    _exit(error == ENOENT ? 127 : 126);
  };
  if (chdir(folder.c_str()) != 0) fail(folder);
  environ = variables.data();  // execvp looks for the program in the new PATH
  execvp(arguments[0], arguments.data());
  fail(arguments[0]);
  _exit(126);
}

void Start(std::uint32_t id, const std::string& payload) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < payload.size();) {
    const std::size_t end = payload.find('\0', at);
    if (end == std::string::npos) break;
    words.push_back(payload.substr(at, end - at));
    at = end + 1;
  }
  const std::size_t variable_count = words.size() < 2 ? 0 : std::strtoul(words[1].c_str(), nullptr, 10);
  if (words.size() < 3 + variable_count) return SendEnd(id, 125, 0);
  std::vector<char*> variables;
  std::vector<char*> arguments;
  for (std::size_t i = 2; i < words.size(); i++) {
    (i < 2 + variable_count ? variables : arguments).push_back(words[i].data());
  }
  variables.push_back(nullptr);
  arguments.push_back(nullptr);

  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& ends : pipes) {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return SendEnd(id, 125, 0);
  }
  Command command;
  command.pid = fork();
  if (command.pid == 0) {
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    dup2(pipes[0][0], 0);
    dup2(pipes[1][1], 1);
    dup2(pipes[2][1], 2);
    signal(SIGPIPE, SIG_DFL);
    Execute(words[0], variables, arguments);
  }
  Close(pipes[0][0]);
  Close(pipes[1][1]);
  Close(pipes[2][1]);
  command.input = pipes[0][1];
  command.output = pipes[1][0];
  command.error = pipes[2][0];
  for (const int fd : {command.input, command.output, command.error}) fcntl(fd, F_SETFL, O_NONBLOCK);
  if (command.pid < 0) {
    Close(command.input);
    Close(command.output);
    Close(command.error);
    return SendEnd(id, 125, 0);
  }
  commands.emplace(id, std::move(command));
}

void FeedInput(Command& command) {
  while (!command.pending.empty() && command.input >= 0) {
    const ssize_t n = write(command.input, command.pending.data(), command.pending.size());
    if (n > 0) {
      command.pending.erase(0, static_cast<std::size_t>(n));
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      Close(command.input);  // nobody reads it
    }
  }
  if (command.input_ended) Close(command.input);
}

// Sends what is there now; true if there may be more later.
bool Drain(std::uint32_t id, FrameType type, int& fd, bool everything) {
  std::array<char, kChunk> data;
  while (fd >= 0) {
    const ssize_t n = read(fd, data.data(), data.size());
    if (n > 0) {
      Send(id, type, data.data(), static_cast<std::uint32_t>(n));
      if (!everything) return true;
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return true;
    } else {
      Close(fd);
    }
  }
  return false;
}

void ReapChildren() {
  int status = 0;
  for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (auto it = commands.begin(); it != commands.end(); ++it) {
      auto& [id, command] = *it;
      if (command.pid != pid) continue;
      kill(-pid, SIGKILL);  // what it left in its group must not hold the pipes
      Drain(id, FrameType::kOutput, command.output, true);
      Drain(id, FrameType::kError, command.error, true);
      Close(command.input);
      Close(command.output);
      Close(command.error);
      SendEnd(id, WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
      commands.erase(it);
      break;
    }
  }
}

void Handle(std::uint32_t id, FrameType type, const std::string& payload) {
  if (type == FrameType::kStart) return Start(id, payload);
  const auto found = commands.find(id);
  if (found == commands.end()) return;  // it has just ended
  Command& command = found->second;
  if (type == FrameType::kInput) command.pending += payload;
  if (type == FrameType::kInputEnd) command.input_ended = true;
  if (type == FrameType::kSignal && !payload.empty()) kill(-command.pid, payload[0]);
  FeedInput(command);
}

void ReadPort(std::string& received) {
  std::array<char, kChunk> data;
  const ssize_t n = read(port, data.data(), data.size());
  if (n == 0) PowerOff();
  if (n < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    PowerOff();
  }
  received.append(data.data(), static_cast<std::size_t>(n));
  std::size_t at = 0;
  while (received.size() - at >= kHeaderSize) {
    std::uint32_t id = 0;
    std::uint32_t size = 0;
    std::memcpy(&id, received.data() + at, 4);
    std::memcpy(&size, received.data() + at + 5, 4);
    if (received.size() - at - kHeaderSize < size) break;
    const auto type = static_cast<FrameType>(received[at + 4]);
    Handle(id, type, received.substr(at + kHeaderSize, size));
    at += kHeaderSize + size;
  }
  received.erase(0, at);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  port = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (port < 0) return 3;
  if (chroot(argv[2]) != 0 || chdir("/") != 0) return 4;
  signal(SIGPIPE, SIG_IGN);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const int signals = signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);

  Send(0, FrameType::kReady, nullptr, 0);
  std::string received;
  for (;;) {
    std::vector<pollfd> waiting{{port, POLLIN, 0}, {signals, POLLIN, 0}};
    for (const auto& [id, command] : commands) {
      // A negative descriptor is left out by poll.
      waiting.push_back({command.output, POLLIN, 0});
      waiting.push_back({command.error, POLLIN, 0});
      waiting.push_back({command.pending.empty() ? -1 : command.input, POLLOUT, 0});
    }
    if (poll(waiting.data(), waiting.size(), -1) < 0) continue;
    std::size_t at = 2;
    for (auto& [id, command] : commands) {
      if (waiting[at].revents != 0) Drain(id, FrameType::kOutput, command.output, false);
      if (waiting[at + 1].revents != 0) Drain(id, FrameType::kError, command.error, false);
      if (waiting[at + 2].revents != 0) FeedInput(command);
      at += 3;
    }
    if (waiting[1].revents != 0) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) {
      }
      ReapChildren();
    }
    if ((waiting[0].revents & (POLLIN | POLLHUP)) != 0) ReadPort(received);
  }
}
