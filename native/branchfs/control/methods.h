// The methods of the control protocol (docs/boughfs-protocol.md): a request in, an answer out. Used by Connection;
// knows no sockets.
#pragma once

#include <string>
#include <string_view>

#include "native/branchfs/store.h"

namespace bough {

struct Answer {
  std::string line;         // with the newline
  bool subscribed = false;  // the connection gets events from now on
};

/// Never throws: what makes no sense is answered as E_BAD_REQUEST.
Answer answer(Store& store, std::string_view line);

/// An event as a line.
std::string eventLine(const StoreEvent& event);

}  // namespace bough
