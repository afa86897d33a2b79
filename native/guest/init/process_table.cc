// See process_table.h.
#include "native/guest/init/process_table.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace bough::guest {
namespace {

constexpr std::size_t kMaxProcesses = 512;
constexpr std::size_t kMaxEnded = 256;

std::uint64_t realtimeMs() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

}  // namespace

void ProcessTable::start(StartRequest request, int cgroupProcs, const std::shared_ptr<Connection>& connection,
                         const Reply& reply) {
  Asker asker{.reply = reply, .connection = connection, .window = request.window};
  if (const auto known = byKey_.find(request.key); !request.key.empty() && known != byKey_.end()) {
    if (const auto starting = starting_.find(known->second); starting != starting_.end()) {
      starting->second.askers.push_back(std::move(asker));
    } else {
      answerStarted(*processes_.at(known->second), asker, true);
    }
    return;
  }
  if (auto room = makeRoom(request.ring); !room) return reply(room.error());
  auto spawned = spawn(request, cgroupProcs);
  if (!spawned) return reply(spawned.error());

  const ProcessNumber number = next_++;
  Starting& starting = starting_[number];
  starting.verdict = std::move(spawned->verdict);
  starting.askers.push_back(std::move(asker));
  starting.token = loop_.watch(starting.verdict.get(), EPOLLIN, [this, number](std::uint32_t) { settle(number); });
  byPid_[spawned->pid] = number;
  if (!request.key.empty()) byKey_[request.key] = number;
  ringBytes_ += request.ring;
  processes_[number] = std::make_unique<Process>(loop_, number, std::move(request), std::move(*spawned), realtimeMs());
}

/// The verdict pipe has ended, or says why there is no program.
void ProcessTable::settle(ProcessNumber number) {
  const auto found = starting_.find(number);
  if (found == starting_.end()) return;
  std::array<char, 64> bytes{};
  const ssize_t n = ::read(found->second.verdict.get(), bytes.data(), bytes.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  loop_.unwatch(found->second.token);
  const Starting starting = std::move(found->second);
  starting_.erase(found);
  Process& process = *processes_.at(number);
  if (n > 0) {
    const Error why = verdictError({bytes.data(), static_cast<std::size_t>(n)}, process.request());
    remove(number);
    for (const Asker& asker : starting.askers) asker.reply(why);
    return;
  }
  bool existing = false;
  for (const Asker& asker : starting.askers) answerStarted(process, asker, std::exchange(existing, true));
}

/// The answer goes first, so that the host knows the number when the output comes.
void ProcessTable::answerStarted(Process& process, const Asker& asker, bool existing) {
  asker.reply(process.started(existing));
  const auto connection = asker.connection.lock();
  if (!asker.window || !connection) return;
  // Without `from`: from the oldest byte that is kept, which is the `from` of the answer.
  [[maybe_unused]] const auto attached = process.attach(
      connection, AttachRequest{.process = process.number(), .from = std::nullopt, .window = *asker.window});
  process.pump();
}

Result<Process*> ProcessTable::find(ProcessNumber number) {
  const auto found = processes_.find(number);
  if (found == processes_.end() || starting_.contains(number)) {
    return Error{ESRCH, "E_NO_PROCESS", "There is no process " + std::to_string(number) + "; it may be forgotten."};
  }
  return found->second.get();
}

Result<Json> ProcessTable::forget(ProcessNumber number) {
  BOUGH_ASSIGN(const Process* process, find(number));
  if (!process->hasEnded()) return Error{EBUSY, "E_STATE", "The process has not ended."};
  remove(number);
  return Json::object();
}

Json ProcessTable::list() const {
  Json all = Json::array();
  for (const auto& [number, process] : processes_) {
    if (!starting_.contains(number)) all.push_back(process->describe());
  }
  return Json{{"processes", std::move(all)}};
}

void ProcessTable::pump(const Connection* connection) {
  for (const auto& [number, process] : processes_) {
    if (process->isAttached(connection)) process->pump();
  }
}

void ProcessTable::detach(const Connection* connection) {
  for (const auto& [number, process] : processes_) process->detach(connection);
}

bool ProcessTable::isAttached(const Connection* connection) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [connection](const auto& each) { return each.second->isAttached(connection); });
}

bool ProcessTable::collect() {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return pid == 0;
    const auto known = byPid_.find(pid);
    if (known == byPid_.end()) continue;  // an orphan, or one that was never a program
    const ProcessNumber number = known->second;
    byPid_.erase(known);
    processes_.at(number)->ended(status);
    ended_.push_back(number);
    while (ended_.size() > kMaxEnded) {
      remove(ended_.front());
    }
  }
}

/// Forgets what ended first, until there is room for one more.
Result<Done> ProcessTable::makeRoom(std::size_t ring) {
  while (processes_.size() >= kMaxProcesses || ringBytes_ + ring > ringBudget_) {
    if (ended_.empty()) {
      return Error{EAGAIN, "E_LIMIT",
                   "Too many processes, or rings that are too large: forget some, or ask for smaller rings."};
    }
    remove(ended_.front());
  }
  return Done{};
}

void ProcessTable::remove(ProcessNumber number) {
  std::erase(ended_, number);
  const auto found = processes_.find(number);
  if (found == processes_.end()) return;
  Process& process = *found->second;
  process.abandon(Error{ESRCH, "E_NO_PROCESS", "The process was forgotten."});
  ringBytes_ -= process.ringBytes();
  if (!process.hasEnded()) byPid_.erase(process.pid());
  if (const auto key = byKey_.find(process.request().key); key != byKey_.end() && key->second == number) {
    byKey_.erase(key);
  }
  processes_.erase(found);
}

}  // namespace bough::guest
