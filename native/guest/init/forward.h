// The host's connection to a TCP port of the guest: bytes both ways, each half ends by itself. Used by the methods.
#pragma once

#include <cstdint>
#include <memory>

#include "native/guest/init/connection.h"
#include "native/guest/init/loop.h"

namespace bough::guest {

/// Connects to the port on the loopback (IPv4, then IPv6), answers the request, then carries bytes. Lives as long as
/// one of the two sides does. A port that cannot be reached is answered with E_NO_PORT, and the connection is closed.
void forward(Loop& loop, Connection::Raw host, std::uint64_t requestId, std::uint16_t port);

/// TCP ports on which somebody in the guest listens: {"ports":[{"port":…,"loopbackOnly":…}]}.
Json listeningPorts();

}  // namespace bough::guest
