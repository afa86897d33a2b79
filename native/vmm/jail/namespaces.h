// A machine's own view of users, processes, files, network and IPC: namespaces(7). Used by jail.cc, in the order of
// this file. Each function does what this host allows and says in the report what it did not.
#pragma once

#include "native/common/unique_fd.h"
#include "native/vmm/jail/jail.h"

namespace bough::vmm {

/// Without CAP_SYS_ADMIN: a user namespace in which this user is itself, for the namespaces below. With one thread
/// only.
void enterUserNamespace(JailReport& report);
/// The next child of this process is the first of a new PID namespace. False: it is not.
bool splitPids(JailReport& report);
/// Mounts, network, IPC and host name.
void splitViews(JailReport& report);
/// A /proc of this process's PID namespace, with processes only, that is mounted nowhere.
UniqueFd openOwnProc(JailReport& report);
/// An empty read-only file system becomes the root, and nothing else is mounted.
void emptyRoot(JailReport& report);

}  // namespace bough::vmm
