// What the host can ask (docs/guest-protocol.md). Used by server.cc.
#pragma once

#include <memory>

#include "native/guest/init/connection.h"
#include "native/guest/init/machine.h"
#include "native/guest/init/request.h"

namespace bough::guest {

/// Carries the request out and answers it, now or later.
void handle(Machine& machine, const std::shared_ptr<Connection>& connection, Request request);

}  // namespace bough::guest
