// See namespaces.h.
#include "native/vmm/jail/namespaces.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace bough::vmm {
namespace {

void missing(JailReport& report, const std::string& what) {
  report.missing.push_back(what + ": " + std::strerror(errno));
}

bool writeFile(const char* path, const std::string& text) {
  const UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool mayMount() {
  // CAP_SYS_ADMIN is what unshare(2) asks for; a try in another process changes nothing here.
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(::unshare(CLONE_NEWNS) == 0 ? 0 : 1);
  int status = 0;
  return pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0;
}

bool makeUserNamespace() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) return false;
  // user_namespaces(7): a group map may be written by an unprivileged process only after setgroups is denied.
  return writeFile("/proc/self/setgroups", "deny") && writeFile("/proc/self/uid_map", uid + " " + uid + " 1") &&
         writeFile("/proc/self/gid_map", gid + " " + gid + " 1");
}

bool split(int what, JailReport& report, const char* name) {
  if (::unshare(what) == 0) return true;
  missing(report, name);
  return false;
}

}  // namespace

void enterUserNamespace(JailReport& report) {
  if (mayMount()) return;  // privileged: no need for one
  // Some hosts let a user namespace be made and then nothing be done in it: a try in another process tells.
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(!makeUserNamespace() ? errno & 0xFF : ::unshare(CLONE_NEWNS) != 0 ? errno & 0xFF : 0);
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid || status != 0) {
    errno = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : EPERM;
    missing(report, "user namespace");
    return;
  }
  report.user = makeUserNamespace();
  if (!report.user) missing(report, "user namespace");
}

bool splitPids(JailReport& report) {
  report.pid = split(CLONE_NEWPID, report, "PID namespace");
  return report.pid;
}

void splitViews(JailReport& report) {
  report.mount = split(CLONE_NEWNS, report, "mount namespace");
  report.network = split(CLONE_NEWNET, report, "network namespace");
  report.ipc = split(CLONE_NEWIPC, report, "IPC namespace");
  report.uts = split(CLONE_NEWUTS, report, "UTS namespace");
}

UniqueFd openOwnProc(JailReport& report) {
  // Without a PID namespace of its own it would show the host's processes.
  if (!report.pid || !report.mount) {
    report.missing.emplace_back("/proc: it needs PID and mount namespaces");
    return {};
  }
  const UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC)));
  if (!context || ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, "subset", "pid", 0) != 0 ||
      ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    missing(report, "/proc");
    return {};
  }
  UniqueFd proc(
      static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                 MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)));
  if (!proc) missing(report, "/proc");
  return proc;
}

void emptyRoot(JailReport& report) {
  if (!report.mount) return;
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  // Any folder that is there serves as the place to mount it.
  const char* const place = "/proc";
  bool done = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("none", place, "tmpfs", kFlags, "size=4k,nr_inodes=2,mode=0555") == 0 && ::chdir(place) == 0;
  if (done && ::syscall(SYS_pivot_root, ".", ".") == 0) {
    done = ::umount2(".", MNT_DETACH) == 0 && ::chdir("/") == 0;
  } else if (done) {
    // pivot_root(2) refuses where the root is the kernel's initial one.
    done = ::mount(".", "/", nullptr, MS_MOVE, nullptr) == 0 && ::chroot(".") == 0 && ::chdir("/") == 0;
  }
  done = done && ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_RDONLY | kFlags, nullptr) == 0;
  if (!done) {
    missing(report, "empty root");
    report.mount = false;
  }
}

}  // namespace bough::vmm
