// See forward.h: who listens, from /proc/net/tcp and tcp6 (proc(5)).
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

#include "native/guest/init/boot.h"
#include "native/guest/init/forward.h"

namespace bough::guest {
namespace {

constexpr std::size_t kMaxTable = 4 << 20;
constexpr std::size_t kMaxPorts = 1024;
constexpr std::string_view kListening = "0A";

std::string_view nextWord(std::string_view& line) {
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(start);
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// Port to whether it is on the loopback alone. A line: "0: 0100007F:1F90 00000000:0000 0A …".
void addListening(std::string_view table, std::map<unsigned, bool>& ports) {
  while (!table.empty()) {
    std::string_view line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    nextWord(line);
    const std::string_view local = nextWord(line);
    nextWord(line);
    if (nextWord(line) != kListening) continue;
    const std::size_t colon = local.find(':');
    unsigned port = 0;
    if (colon == std::string_view::npos) continue;
    std::from_chars(local.data() + colon + 1, local.data() + local.size(), port, 16);
    if (port == 0) continue;
    const std::string_view address = local.substr(0, colon);
    // 127.0.0.0/8 ends in 7F, ::1 is written as it is here: words of four bytes, each in the machine's order.
    const bool loopback = address.size() == 8 ? address.ends_with("7F") : address == "00000000000000000000000001000000";
    const auto known = ports.emplace(port, loopback).first;
    known->second = known->second && loopback;
  }
}

}  // namespace

Json listeningPorts() {
  std::map<unsigned, bool> ports;
  addListening(readWhole("/proc/net/tcp", kMaxTable), ports);
  addListening(readWhole("/proc/net/tcp6", kMaxTable), ports);
  Json list = Json::array();
  for (const auto& [port, loopbackOnly] : ports) {
    if (list.size() < kMaxPorts) list.push_back(Json{{"port", port}, {"loopbackOnly", loopbackOnly}});
  }
  return Json{{"ports", std::move(list)}};
}

}  // namespace bough::guest
