// The measuring program of bench/fs: system calls timed one by one, without a runtime in between. Built by probe.ts.
//
//   probe stat DIR ROUNDS            warm stat of every file below DIR                  ns per stat, a sample per round
//   probe cold DIR                   stat and open of every file below DIR, once        ns per file, one sample
//   probe readdir DIR ROUNDS         opendir, read all, closedir                        ns per listing
//   probe create DIR COUNT           create, write 1 KiB, close                         ns per file
//   probe firstwrite DIR COUNT       open f0…, write one byte, close                    ns per file
//   probe seqwrite FILE MIB          sequential write in 1 MiB pieces, then fsync       MiB/s without and with fsync
//   probe seqread FILE               sequential read in 1 MiB pieces, cache dropped     MiB/s
//   probe durable DIR COUNT          write, fsync, rename of COUNT 1 KiB files          ns in all
//   probe rpc SOCKET                 each line of stdin: sent, answered, timed          ns and the answer, a line each
//
// Samples go to stdout, one a line.
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds(const std::function<void()>& body) {
  const auto start = Clock::now();
  body();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
}

[[noreturn]] void die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

void collect(const std::string& dir, std::vector<std::string>& files) {
  DIR* open = ::opendir(dir.c_str());
  if (open == nullptr) die(dir);
  std::vector<std::string> folders;
  while (const dirent* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    (entry->d_type == DT_DIR ? folders : files).push_back(dir + "/" + name);
  }
  ::closedir(open);
  for (const auto& folder : folders) collect(folder, files);
}

void statAll(const std::vector<std::string>& files) {
  struct stat st;
  for (const auto& file : files)
    if (::stat(file.c_str(), &st) != 0) die(file);
}

void warmStat(const std::string& dir, int rounds) {
  std::vector<std::string> files;
  collect(dir, files);
  statAll(files);
  for (int i = 0; i < rounds; ++i)
    std::printf("%lld\n",
                static_cast<long long>(nanoseconds([&] { statAll(files); }) / static_cast<std::int64_t>(files.size())));
}

void coldStat(const std::string& dir) {
  std::size_t count = 0;
  const auto spent = nanoseconds([&] {
    std::vector<std::string> files;
    collect(dir, files);
    count = files.size();
    struct stat st;
    for (const auto& file : files) {
      if (::stat(file.c_str(), &st) != 0) die(file);
      const int fd = ::open(file.c_str(), O_RDONLY);
      if (fd < 0) die(file);
      ::close(fd);
    }
  });
  std::printf("%lld\n", static_cast<long long>(spent / static_cast<std::int64_t>(count)));
}

void readdirAll(const std::string& dir, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    std::printf("%lld\n", static_cast<long long>(nanoseconds([&] {
                  DIR* open = ::opendir(dir.c_str());
                  if (open == nullptr) die(dir);
                  while (::readdir(open) != nullptr) {
                  }
                  ::closedir(open);
                })));
  }
}

void createFiles(const std::string& dir, int count) {
  const std::string data(1024, 'x');
  for (int i = 0; i < count; ++i) {
    const std::string path = dir + "/new" + std::to_string(i);
    std::printf("%lld\n", static_cast<long long>(nanoseconds([&] {
                  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
                  if (fd < 0 || ::write(fd, data.data(), data.size()) != 1024) die(path);
                  ::close(fd);
                })));
  }
}

void firstWrite(const std::string& dir, int count) {
  for (int i = 0; i < count; ++i) {
    const std::string path = dir + "/f" + std::to_string(i);
    std::printf("%lld\n", static_cast<long long>(nanoseconds([&] {
                  const int fd = ::open(path.c_str(), O_WRONLY);
                  if (fd < 0 || ::pwrite(fd, "!", 1, 1000) != 1) die(path);
                  ::close(fd);
                })));
  }
}

constexpr std::size_t kPiece = 1 << 20;

void sequentialWrite(const std::string& path, int mib) {
  const std::string piece(kPiece, 'w');
  const int fd = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0) die(path);
  const auto written = nanoseconds([&] {
    for (int i = 0; i < mib; ++i)
      if (::write(fd, piece.data(), piece.size()) != static_cast<ssize_t>(piece.size())) die(path);
  });
  const auto synced = nanoseconds([&] { ::fsync(fd); });
  ::close(fd);
  std::printf("%.1f\n%.1f\n", mib * 1e9 / static_cast<double>(written),
              mib * 1e9 / static_cast<double>(written + synced));
}

void sequentialRead(const std::string& path) {
  std::vector<char> piece(kPiece);
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) die(path);
  std::int64_t total = 0;
  const auto spent = nanoseconds([&] {
    ssize_t got = 0;
    while ((got = ::read(fd, piece.data(), piece.size())) > 0) total += got;
    if (got < 0) die(path);
  });
  ::close(fd);
  std::printf("%.1f\n", static_cast<double>(total) / (1 << 20) * 1e9 / static_cast<double>(spent));
}

void durable(const std::string& dir, int count) {
  const std::string data(1024, 'd');
  const int folder = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  std::printf("%lld\n", static_cast<long long>(nanoseconds([&] {
                for (int i = 0; i < count; ++i) {
                  const std::string path = dir + "/durable" + std::to_string(i);
                  const std::string staged = path + ".tmp";
                  const int fd = ::open(staged.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0644);
                  if (fd < 0 || ::write(fd, data.data(), data.size()) != 1024 || ::fsync(fd) != 0) die(staged);
                  ::close(fd);
                  if (::rename(staged.c_str(), path.c_str()) != 0) die(path);
                }
                ::fsync(folder);
              })));
  ::close(folder);
}

void rpc(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) die("socket path");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) die(path);
  std::string line, rest;
  std::vector<char> buffer(65536);
  while (std::getline(std::cin, line)) {
    line += '\n';
    std::string answer;
    const auto spent = nanoseconds([&] {
      if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) die("write");
      std::size_t end = 0;
      while ((end = rest.find('\n')) == std::string::npos) {
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got <= 0) die("read");
        rest.append(buffer.data(), static_cast<std::size_t>(got));
      }
      answer = rest.substr(0, end);
      rest.erase(0, end + 1);
    });
    std::printf("%lld %s\n", static_cast<long long>(spent), answer.c_str());
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() < 2) return 2;
  const std::string& what = args[0];
  const int number = args.size() > 2 ? std::atoi(args[2].c_str()) : 0;
  if (what == "stat")
    warmStat(args[1], number);
  else if (what == "cold")
    coldStat(args[1]);
  else if (what == "readdir")
    readdirAll(args[1], number);
  else if (what == "create")
    createFiles(args[1], number);
  else if (what == "firstwrite")
    firstWrite(args[1], number);
  else if (what == "seqwrite")
    sequentialWrite(args[1], number);
  else if (what == "seqread")
    sequentialRead(args[1]);
  else if (what == "durable")
    durable(args[1], number);
  else if (what == "rpc")
    rpc(args[1]);
  else
    return 2;
  return 0;
}
