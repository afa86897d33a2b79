// What a machine must not share with the one it was forked from: random numbers, wall clock, host name, identity, boot
// id. Used by the methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "native/common/result.h"
#include "native/guest/init/json.h"
#include "native/guest/init/requests.h"

namespace bough::guest {

/// Mixes the bytes into the kernel's pool, credits them (RNDADDENTROPY), and makes it draw a new key from the pool now
/// (RNDRESEEDCRNG); without the second it might go on for a minute with the numbers of the sibling. random(4).
Result<Done> reseed(std::string_view entropy);

std::uint64_t realtimeUs();

/// Sets the wall clock if it is off by more than a second. Returns by how much it was stepped, in microseconds.
Result<std::int64_t> setClock(std::uint64_t realtimeUs);

class Identity {
 public:
  /// Host name, boot id and /run/bough/identity. `forked`: counts as one more fork.
  Result<Done> become(const IdentityRequest& request, bool forked);

  const std::optional<IdentityRequest>& current() const { return current_; }
  std::uint64_t forks() const { return forks_; }

 private:
  std::optional<IdentityRequest> current_;
  std::uint64_t forks_ = 0;
};

/// As JSON: {branch, name, index}.
Json toJson(const IdentityRequest& identity);
Result<Done> setHostname(const std::string& name);
std::string hostname();
/// What /proc/sys/kernel/random/boot_id says.
std::string bootId();

}  // namespace bough::guest
