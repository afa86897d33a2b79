// Capabilities, limits and the environment of a machine's process. Used by jail.cc, reaper.cc and main.cc.
#pragma once

namespace bough::vmm {

/// No core file, no locked memory, descriptors enough for a large fork and not more. Lowers, or raises as far as
/// allowed.
void limitResources();

/// No capability in any set, no new privileges by exec, and not to be traced by others of the same user. Answers 0 or
/// an errno.
int dropPrivileges();

/// Overwrites and forgets what the caller's environment said: a machine's process shall hold no secret of the host.
void forgetEnvironment();

}  // namespace bough::vmm
