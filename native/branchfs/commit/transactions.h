// The transactions that a journal folder holds: which there are, where their kept things are, making and forgetting
// them. Used by base_commit.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native/branchfs/commit/journal.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::base_commit {

/// What is known of a transaction without reading its journal again.
struct Known {
  std::uint32_t firstRoot = 0;
  std::size_t items = 0;
  bool committed = false;
  bool done = false;
};

/// A transaction's folder, open.
struct Folder {
  UniqueFd fd;
  UniqueFd kept;  // its subfolder; -1 if it is not there
};

/// All functions may be called from any thread.
class Transactions {
 public:
  explicit Transactions(UniqueFd journalDir) : dir_(std::move(journalDir)) {}

  /// Clears what was being deleted and learns of the others. Damaged journals are an error.
  Result<> scan();

  int fd() const { return dir_.get(); }
  /// Numbers of all folders, also of those without a readable plan.
  Result<std::vector<Txn>> numbers() const;
  Result<Folder> make(Txn txn);
  Result<Folder> open(Txn txn) const;
  /// Makes the names of a new transaction's folder durable.
  Result<> syncNames(const Folder& folder) const;
  /// Deletes a transaction's folder, in a way that a crash leaves it whole or gone.
  Result<> destroy(Txn txn);

  void learn(Txn txn, const Known& known);
  std::optional<Known> find(Txn txn) const;
  std::vector<Txn> committed() const;
  /// The folder `kept` and the name in it for a root number.
  Result<std::pair<UniqueFd, std::string>> keptPlace(std::uint32_t root) const;

 private:
  UniqueFd dir_;
  mutable std::mutex lock_;
  std::map<Txn, Known> known_;
  std::map<std::uint32_t, Txn> byRoot_;  // by firstRoot
};

}  // namespace bough::base_commit
