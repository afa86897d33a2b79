// The control socket: listens, lets in only the same user and root (SO_PEERCRED), keeps the connections. Used by
// main.cc.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "native/branchfs/control/connection.h"
#include "native/branchfs/store.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough {

class Server {
 public:
  /// Listens at `path`; its folder is made with mode 0700 if it is not there. A socket that a dead process left is
  /// replaced; one that somebody answers on is E_STORE_BUSY.
  static Result<std::unique_ptr<Server>> start(Store& store, const std::string& path);
  /// Ends all connections and removes the socket.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  Server(Store& store, std::string path, UniqueFd listener, UniqueFd wake);
  void accept();
  void reap();

  Store& store_;
  std::string path_;
  UniqueFd listener_, wake_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::thread acceptor_;
};

}  // namespace bough
