// The functions of bough.node, one declaration per function that TypeScript sees. Used by addon.cc only; each is
// defined in the file that is named after its subject. Arguments are checked in helper/native/addon.ts, which is the
// only caller.
#pragma once

#include <napi.h>

namespace bough::addon {

// peerCredentials(fd) → {pid, uid, gid} of the process at the other end of a unix socket: unix(7), SO_PEERCRED.
Napi::Value PeerCredentials(const Napi::CallbackInfo& info);

// pidfdOpen(pid) → fd, close-on-exec: pidfd_open(2).
Napi::Value PidfdOpen(const Napi::CallbackInfo& info);
// pidfdSendSignal(pidfd, signal): pidfd_send_signal(2). Signal 0 asks whether the process is there.
Napi::Value PidfdSendSignal(const Napi::CallbackInfo& info);

// renameExchange(a, b) swaps two paths, renameNoReplace(from, to) fails with EEXIST: renameat2(2).
Napi::Value RenameExchange(const Napi::CallbackInfo& info);
Napi::Value RenameNoReplace(const Napi::CallbackInfo& info);
// ficlone(source, target) → true when target (made new) shares source's blocks, false where the file system cannot:
// ioctl_ficlone(2).
Napi::Value Ficlone(const Napi::CallbackInfo& info);

// openPty(rows, columns) → {master: fd, slave: path}: pty(7).
Napi::Value OpenPty(const Napi::CallbackInfo& info);
// resizePty(master fd, rows, columns): ioctl_tty(2), TIOCSWINSZ.
Napi::Value ResizePty(const Napi::CallbackInfo& info);

// probeKvm() → {open, apiVersion, vcpuRuns, error}: opens /dev/kvm and runs one vCPU until its HLT.
Napi::Value ProbeKvm(const Napi::CallbackInfo& info);
// probeFuse() → {open, errno}: whether /dev/fuse can be opened, and why not.
Napi::Value ProbeFuse(const Napi::CallbackInfo& info);

}  // namespace bough::addon
