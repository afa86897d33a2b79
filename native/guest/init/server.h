// Lets the host in and hands its requests to the methods. Used by main.cc.
#pragma once

#include <memory>
#include <unordered_set>

#include "native/guest/init/connection.h"
#include "native/guest/init/listener.h"
#include "native/guest/init/machine.h"

namespace bough::guest {

class Server {
 public:
  Server(Machine& machine, std::unique_ptr<Listener> listener);

 private:
  void accept();

  Machine& machine_;
  std::unique_ptr<Listener> listener_;
  std::unordered_set<std::shared_ptr<Connection>> connections_;
};

}  // namespace bough::guest
