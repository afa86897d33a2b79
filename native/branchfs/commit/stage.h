// Makes the files, links and folders of a transaction in their staging places, complete and durable, so that only names
// have to be swapped afterwards. Used by base_commit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/branchfs/commit/copy.h"
#include "native/common/result.h"
#include "native/common/unique_fd.h"

namespace bough::base_commit {

/// Finds the folder and the name of a BaseRef.
using Resolve = std::function<Result<std::pair<UniqueFd, std::string>>(const BaseRef&)>;

class Stager {
 public:
  /// `syncEach`: fsync every file and folder; else the caller syncs the file system.
  Stager(Resolve resolve, bool syncEach) : resolve_(std::move(resolve)), syncEach_(syncEach) {}

  /// Makes `node` as `name` in the folder. False: the system does not allow such a node (noted in notApplied). `path`:
  /// what it will be, for reports. `folderFd` stays open as long as this object lives.
  Result<bool> make(int folderFd, const std::string& name, const NewNode& node, const std::string& path);

  std::vector<NotApplied> notApplied;
  std::string errorPath;  // what make failed at

 private:
  Result<bool> makeAt(const std::string& below, const NewNode& node, const std::string& path);
  Result<bool> makeFolder(int parentFd, const std::string& name, const std::string& below, const NewNode& node,
                          const std::string& path);
  Result<> makeFile(int parentFd, const std::string& name, const NewNode& node, const std::string& path);
  Result<> makeLink(int parentFd, const std::string& name, const std::string& below, const BaseRef& from,
                    const std::string& path);
  Result<bool> linkToFirst(std::uint64_t key, int parentFd, const std::string& name);

  Resolve resolve_;
  bool syncEach_;
  int rootFd_ = -1;
  CopiedLinks copied_;
  std::map<std::uint64_t, CopiedLinks::Place> firsts_;  // by linkKey
};

/// How many files and folders `make` will make.
std::size_t countNodes(const NewNode& node);
/// Whether anything in it is made from an existing file.
bool usesLinks(const NewNode& node);
/// Whether anything in it may be another name of something staged before.
bool sharesFiles(const NewNode& node);

}  // namespace bough::base_commit
