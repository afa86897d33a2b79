// make_initramfs: packs bough-init into the archive that the kernel starts from. Run by the build (target `initramfs`),
// and by tests that want more programs in it.
//   make_initramfs --init FILE --out FILE [--add FILE=PATH]...
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "native/common/log.h"
#include "native/guest/initramfs/newc.h"

namespace {

using namespace bough;

constexpr const char* kUsage = "usage: make_initramfs --init FILE --out FILE [--add FILE=PATH]...\n";

std::optional<std::string> readFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    logLine("E_IO: " + path + " cannot be read. Build it first.");
    return std::nullopt;
  }
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Under another name first: a build that is interrupted leaves no half archive.
bool writeFile(const std::string& path, const std::string& bytes) {
  const std::string fresh = path + ".new";
  {
    std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (out && ::rename(fresh.c_str(), path.c_str()) == 0) return true;
  }
  logLine("E_IO: " + path + " cannot be written. Is the folder there, and is there room?");
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  enum { kInit = 1000, kOut, kAdd };
  static const std::array<option, 4> kOptions = {
      option{"init", required_argument, nullptr, kInit},
      option{"out", required_argument, nullptr, kOut},
      option{"add", required_argument, nullptr, kAdd},
      option{nullptr, 0, nullptr, 0},
  };
  std::string init, out;
  guest::NewcArchive archive;
  bool understood = true;
  for (int found = 0; (found = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    const std::string value = optarg == nullptr ? "" : optarg;
    if (found == kInit) {
      init = value;
    } else if (found == kOut) {
      out = value;
    } else if (const std::size_t equals = value.rfind("=/"); found == kAdd && equals != std::string::npos) {
      auto content = readFile(value.substr(0, equals));
      if (!content) return 1;
      archive.addFile(value.substr(equals + 2), std::move(*content), 0755);
    } else {
      understood = false;
    }
  }
  if (!understood || optind != argc || init.empty() || out.empty()) {
    ::fputs(kUsage, stderr);
    return 2;
  }
  auto program = readFile(init);
  if (!program) return 1;
  // What bough-init mounts on, and the console that the kernel opens for it before anything is mounted.
  for (const char* folder : {"dev", "proc", "sys", "run", "newroot", "root"}) archive.addFolder(folder);
  archive.addFolder("tmp", 01777);
  archive.addCharacterDevice("dev/console", 0600, 5, 1);
  archive.addFile("init", std::move(*program), 0755);
  return writeFile(out, archive.bytes()) ? 0 : 1;
}
