// What makes processes: fork, checkpoint, save, and what becomes of them on both sides. See service.h.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "native/common/log.h"
#include "native/vmm/control/service.h"
#include "native/vmm/saved/read.h"
#include "native/vmm/saved/write.h"

namespace bough::vmm {
namespace {

constexpr std::chrono::seconds kLatest{60};

/// "<code>: <message>", as a child reports it.
Error childFailed(const std::string& name, const std::string& said) {
  std::string why = said.substr(0, said.find('\n'));
  if (why.empty()) why = "it was killed before it could tell";
  return Error{EIO, "E_CHILD", "The child " + name + " did not start (" + why + "): the machine itself is unharmed."};
}

/// What the parent's side of a fork could not have: descriptors, mostly.
Error noRoom(const Error& why) {
  return Error{why.errnum, "E_FORK",
               "The fork cannot be followed (" + why.message +
                   "): raise the limit on open files; the machine itself is unharmed."};
}

/// What another process wrote so far and will not write more of.
std::string textNow(int fd) {
  std::array<char, 1024> text{};
  const ssize_t n = ::read(fd, text.data(), text.size());
  return n > 0 ? std::string(text.data(), static_cast<std::size_t>(n)) : std::string();
}

}  // namespace

std::size_t Service::inFlight() const {
  std::size_t count = saves_.size();
  for (const ForkJob& job : forks_) count += job.parts.size();
  return count;
}

Result<Done> Service::checkLimit(std::size_t more) const {
  if (inFlight() + more <= options_.maxForks) return Done{};
  return Error{EAGAIN, "E_TOO_MANY_FORKS",
               std::to_string(inFlight()) + " children are on their way and " + std::to_string(more) +
                   " more are asked for; at most " + std::to_string(options_.maxForks) +
                   " may be: wait for those, or start boughvm with a larger --max-forks."};
}

std::string Service::freshName() {
  for (;;) {
    const std::string number = "." + std::to_string(++childNumber_);
    std::string name = options_.name.substr(0, 64 - number.size()) + number;
    if (!children_.hasName(name)) return name;
  }
}

Result<Done> Service::checkFork(ForkRequest& fork) {
  BOUGH_TRY(needMachine());
  if (machine_->state() == MachineState::kStopped) {
    return Error{EINVAL, "E_STATE", "The guest has ended: there is nothing to fork."};
  }
  BOUGH_TRY(checkLimit(fork.children.size()));
  std::set<std::string> taken{options_.name};
  for (const Child& child : children_.living()) taken.insert(child.name);
  for (const ForkJob& job : forks_) {
    for (const ForkPart& part : job.parts) taken.insert(part.child.name);
  }
  const std::size_t systems = machine_->config().fileSystems.size();
  for (ChildRequest& child : fork.children) {
    if (child.name.empty()) child.name = freshName();
    if (!taken.insert(child.name).second) {
      return Error{EEXIST, "E_NAME_TAKEN", "There is a machine " + child.name + " already: choose another name."};
    }
    if (!child.frozen && child.devices.fileSystems.size() != systems) {
      return Error{EINVAL, "E_DESCRIPTORS",
                   "The machine has " + std::to_string(systems) + " file systems, and " +
                       std::to_string(child.devices.fileSystems.size()) + " descriptors came for the child " +
                       child.name + ": give one for each."};
    }
  }
  return Done{};
}

void Service::becomeChild(std::string name, UniqueFd control) {
  forked_ = true;
  options_.name = std::move(name);
  nameLog(options_.name);
  // The parent's: its clients' connections, its children, what it waits for. Closed, never shut down.
  forks_.clear();
  saves_.clear();
  ramCheck_.reset();
  children_.becomeChild();
  childNumber_ = 0;
  exitsSeen_ = 0;
  exitsSeenAt_ = Clock::now();
  auto served = server_->becomeChild(std::move(control));
  if (served) served = signals_.watch();
  if (!served) {
    logLine("E_IO: a forked machine cannot serve its control socket: " + served.error().message);
    ::_exit(static_cast<int>(ExitCode::kFailed));
  }
}

Result<bool> Service::forkGroup(ForkRequest& fork, bool frozen, std::vector<ChildProcess>& made, Microseconds& took) {
  std::vector<HostEnds> ends;
  std::vector<ChildRequest*> group;
  for (ChildRequest& child : fork.children) {
    if (child.frozen != frozen) continue;
    group.push_back(&child);
    ends.push_back(std::move(child.devices));
  }
  if (group.empty()) return false;
  BOUGH_ASSIGN(ForkOutcome outcome, machine_->fork(std::move(ends), {frozen, fork.dropMemslots, fork.verify}));
  if (outcome.me) {
    ChildRequest& me = *group.at(*outcome.me);
    becomeChild(std::move(me.name), std::move(me.control));
    return true;
  }
  took += machine_->metrics().lastPause.fork;
  for (ChildProcess& child : outcome.children) made.push_back(std::move(child));
  return false;
}

void Service::fork(ConnectionId from, const Json& id, Result<ForkRequest> asked) {
  if (!asked) {
    server_->fail(from, id, asked.error());
    return;
  }
  if (auto started = startFork(from, id, std::move(*asked)); !started) server_->fail(from, id, started.error());
}

Result<Done> Service::startFork(ConnectionId from, const Json& id, ForkRequest fork) {
  BOUGH_TRY(checkFork(fork));
  const bool ran = machine_->state() == MachineState::kRunning;
  if (ran) BOUGH_TRY(machine_->pause());
  const auto start = Clock::now();
  std::vector<ChildProcess> frozen;
  std::vector<ChildProcess> running;
  Microseconds took{};
  auto forked = forkGroup(fork, true, frozen, took);
  if (forked && !*forked) forked = forkGroup(fork, false, running, took);
  if (forked && *forked) return Done{};  // this is a child
  Result<Done> resumed = Done{};
  if (ran) resumed = machine_->resume();

  ForkJob& job = forks_.emplace_back();
  job.from = from;
  job.id = id;
  job.start = start;
  job.pause = lastPause();
  job.pause["forkUs"] = took.count();
  auto nextFrozen = frozen.begin();
  auto nextRunning = running.begin();
  std::vector<UniqueFd> reports;
  for (ChildRequest& child : fork.children) {
    auto& next = child.frozen ? nextFrozen : nextRunning;
    if (next == (child.frozen ? frozen.end() : running.end())) continue;  // its group could not be forked
    ForkPart& part = job.parts.emplace_back();
    part.child = {child.name, next->pid, std::move(next->pidfd), child.frozen};
    reports.push_back(std::move(next->report));
    ++next;
  }
  if (!forked || !resumed) {
    finishFork(&job, forked ? resumed.error() : forked.error());
    return Done{};
  }
  for (std::size_t i = 0; i < job.parts.size(); i++) {
    auto report = PipeText::read(loop_, std::move(reports[i]),
                                 [this, &job, i](const std::string& text) { partReported(&job, i, text); });
    if (!report) {
      finishFork(&job, noRoom(report.error()));
      return Done{};
    }
    job.parts[i].report = std::move(*report);
  }
  auto deadline = Alarm::in(loop_, kLatest, [this, &job] {
    finishFork(&job, Error{ETIMEDOUT, "E_CHILD_LATE",
                           "A child did not start within a minute: the host is overloaded; the machine runs on."});
  });
  if (!deadline)
    finishFork(&job, deadline.error());
  else
    job.deadline = std::move(*deadline);
  return Done{};
}

void Service::partReported(ForkJob* job, std::size_t index, const std::string& text) {
  ForkPart& part = job->parts[index];
  if (text != "ok\n") return finishFork(job, childFailed(part.child.name, text));
  part.startUs =
      static_cast<std::uint64_t>(std::chrono::duration_cast<Microseconds>(Clock::now() - job->start).count());
  const bool all = std::all_of(job->parts.begin(), job->parts.end(), [](const ForkPart& one) { return one.startUs; });
  if (all) finishFork(job, std::nullopt);
}

void Service::finishFork(ForkJob* job, std::optional<Error> error) {
  Json list = Json::array();
  std::vector<UniqueFd> pidfds;
  for (const ForkPart& part : job->parts) {
    if (error) break;
    list.push_back({{"name", part.child.name},
                    {"pid", part.child.pid},
                    {"frozen", part.child.frozen},
                    {"startUs", *part.startUs}});
    pidfds.emplace_back(::fcntl(part.child.pidfd.get(), F_DUPFD_CLOEXEC, 3));
    if (!pidfds.back()) error = noRoom(sysError(errno, "a child's pidfd"));
  }
  // Children that nobody knows of would run for ever: without an answer there are none.
  const bool told =
      !error && server_->answer(job->from, job->id, {{"children", list}, {"pause", job->pause}}, std::move(pidfds));
  for (ForkPart& part : job->parts) {
    part.report.reset();
    if (told)
      children_.add(std::move(part.child));
    else
      children_.discard(std::move(part.child));
  }
  if (error) server_->fail(job->from, job->id, *error);
  forks_.remove_if([job](const ForkJob& one) { return &one == job; });
}

void Service::save(ConnectionId from, const Json& id, Result<SaveRequest> asked) {
  if (!asked) {
    server_->fail(from, id, asked.error());
    return;
  }
  if (auto started = startSave(from, id, std::move(*asked)); !started) server_->fail(from, id, started.error());
}

Result<Done> Service::startSave(ConnectionId from, const Json& id, SaveRequest save) {
  BOUGH_TRY(needMachine());
  if (machine_->state() == MachineState::kStopped) {
    return Error{EINVAL, "E_STATE", "The guest has ended: there is nothing to save."};
  }
  BOUGH_TRY(checkLimit(1));
  BOUGH_TRY(checkTarget(save.target.get()));
  std::optional<SavedFile> base;
  if (save.base) {
    BOUGH_ASSIGN(SavedFile opened, SavedFile::open(std::move(save.base)));
    BOUGH_TRY(checkBase(opened, machine_->memory().size()));
    base.emplace(std::move(opened));
  }
  auto pipes = Pipe::make();
  if (!pipes) return noRoom(pipes.error());
  Pipe pipe = std::move(*pipes);
  const auto start = Clock::now();
  const bool ran = machine_->state() == MachineState::kRunning;
  if (ran) BOUGH_TRY(machine_->pause());
  std::vector<HostEnds> ends(1);
  auto forked = machine_->fork(std::move(ends), {.freeze = true, .dropMemslots = false, .verify = false});
  if (forked && forked->me) {
    const UniqueFd out = std::move(pipe.write);
    pipe.read.reset();
    becomeChild(options_.name + ".save", {});
    Encoder config;
    machine_->config().encode(config);
    const std::string state = machine_->saveState();
    const auto written = writeSaved(save.target.get(), {machine_->memory(), config.str(), state, machine_->cpuDigest()},
                                    base ? &*base : nullptr);
    const Json said = written ? Json{{"digest", written->digest}, {"bytes", written->bytes}, {"pages", written->pages}}
                              : Json{{"code", written.error().code},
                                     {"errno", written.error().errnum},
                                     {"message", written.error().message}};
    const std::string line = said.dump();
    [[maybe_unused]] const ssize_t sent = ::write(out.get(), line.data(), line.size());
    ::_exit(0);
  }
  Result<Done> resumed = Done{};
  if (ran) resumed = machine_->resume();
  if (!forked) return forked.error();
  ChildProcess& writer = forked->children.front();
  pipe.write.reset();
  SaveJob& job = saves_.emplace_back();
  job.from = from;
  job.id = id;
  job.start = start;
  job.pause = lastPause();
  job.machineReport = std::move(writer.report);
  Child process{"save", writer.pid, std::move(writer.pidfd), true};
  auto report =
      PipeText::read(loop_, std::move(pipe.read), [this, &job](const std::string& text) { saveReported(&job, text); });
  if (!report || !resumed) {
    children_.discard(std::move(process));
    saves_.pop_back();
    return resumed ? report.error() : resumed.error();
  }
  children_.addUntold(std::move(process));
  job.report = std::move(*report);
  return Done{};
}

void Service::saveReported(SaveJob* job, const std::string& text) {
  Json said = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object()) {
    const std::string why = textNow(job->machineReport.get());
    server_->fail(job->from, job->id, childFailed("that saves", why == "ok\n" ? std::string() : why));
  } else if (said.contains("code")) {
    server_->fail(job->from, job->id, Error{said["errno"], said["code"], said["message"]});
  } else {
    said["tookMs"] = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - job->start).count();
    said["pause"] = job->pause;
    server_->answer(job->from, job->id, std::move(said));
  }
  saves_.remove_if([job](const SaveJob& one) { return &one == job; });
}

}  // namespace bough::vmm
