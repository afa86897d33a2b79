// See guest_lines.h.
#include "test/vm/harness/guest_lines.h"

#include <optional>
#include <stdexcept>

namespace bough::vmtest {

std::uint64_t field(const std::string& line, unsigned index) {
  const std::size_t at = std::size_t{17} * index;
  if (line.size() < at + 16) throw std::runtime_error("the guest wrote \"" + line + "\" where numbers should be");
  return std::stoull(line.substr(at, 16), nullptr, 16);
}

std::string linesOn(Vm& vm, unsigned count) {
  std::size_t from = vm.console().waitFor("\n", vm.console().size());
  std::string line;
  for (unsigned i = 0; i < count; i++) line = vm.console().line(from);
  return line;
}

std::string complaint(Vm& vm, std::size_t from) {
  const std::string text = vm.console().text(from);
  for (const char* word : {"FAIL", "EXCEPTION"}) {
    const std::size_t at = text.find(word);
    if (at != std::string::npos) return text.substr(at);
  }
  return {};
}

std::string forkOfStream(Vm& vm, const Numbers& numbers, const Json& params) {
  vm.must("pause");
  Vm child = vm.forkOne(false, params);
  // The end of a line, and a whole one behind it.
  child.console().waitForMore(2 * Numbers::kLine);
  const std::string text = child.console().text();
  const std::optional<std::size_t> start = numbers.startOf(text);
  if (!start) return "the child wrote no such line: " + text;
  std::string wrong = numbers.differs(text, *start);
  // Nobody writes while it is paused, so what is under way is all that can come.
  if (*start > 0) vm.console().waitForMore(*start - 1);
  const std::size_t written = vm.console().size();
  if (written != *start) {
    wrong += "the parent has written " + std::to_string(written) + " bytes, and the child went on at byte " +
             std::to_string(*start);
  }
  vm.must("resume");
  return wrong;
}

}  // namespace bough::vmtest
