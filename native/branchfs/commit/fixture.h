// What the tests of commit/ share: a base and a journal folder on real file systems, whole trees as comparable text,
// and child processes that may be killed, lose their privileges or have mounts of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "native/branchfs/commit/base_commit.h"
#include "native/common/unique_fd.h"

namespace bough::commit_test {

/// A folder that is deleted with everything below it.
class TempFolder {
 public:
  /// `parent`: "" for TMPDIR or /tmp.
  explicit TempFolder(const std::string& parent = "");
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A base and a store's folder commit/.
struct World {
  std::string base;
  std::string journal;
  UniqueFd baseFd;
  std::unique_ptr<BaseCommit> commits;

  World(std::string baseFolder, std::string journalFolder);
  /// As after a restart.
  void reopen();
  std::string at(const std::string& path) const { return base + "/" + path; }
};

inline constexpr std::int64_t kOldTime = 1'600'000'000;
inline constexpr std::int64_t kNewTime = 1'700'000'000;

void writeFile(const std::string& path, const std::string& data, unsigned mode = 0644);
std::string readFile(const std::string& path);
void makeFolder(const std::string& path, unsigned mode = 0755);
void setTime(const std::string& path, std::int64_t seconds);
/// Every file and folder below (and the folder itself) gets this mtime.
void setTimesBelow(const std::string& path, std::int64_t seconds);
void setXattr(const std::string& path, const std::string& key, const std::string& value);
bool exists(const std::string& path);

/// Path (relative) → everything that belongs to it: kind, mode, owner, mtime, size, data, holes, xattrs, target,
/// device, and which other paths are the same file.
using TreeText = std::map<std::string, std::string>;
TreeText treeText(const std::string& folder);
/// "" if equal; else the first differences, for a message.
std::string difference(const TreeText& is, const TreeText& wanted);

Expect absent();
/// What is at the path now: unchanged since.
Expect unchanged(const World& world, const std::string& path);
Expect sameFolder(const World& world, const std::string& path);
NewNode fileNode(const std::string& data, unsigned mode = 0644);
NewNode folderNode(unsigned mode = 0755);

/// Runs `body` in a child process. Gives what it returned, or "signal N".
std::string inChild(const std::function<std::string()>& body);
/// Runs `body` in a child that is killed at a fail point ("name:count"; "": not killed). False: it was not killed.
bool killedAt(const std::string& failAt, const std::string& traceFile, const std::function<void()>& body);
/// The fail points in a trace as "name:count", each passing once.
std::vector<std::string> passings(const std::string& traceFile);

/// Gives this process mounts of its own, invisible to others and gone with it. False: not allowed here.
bool ownMounts();
/// A tmpfs in a fresh folder, mounted for this process only (see ownMounts).
class TempFileSystem {
 public:
  /// `options` as mount(8), e.g. "size=1m".
  explicit TempFileSystem(const std::string& options = "");
  ~TempFileSystem();
  TempFileSystem(const TempFileSystem&) = delete;
  TempFileSystem& operator=(const TempFileSystem&) = delete;
  const std::string& path() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

}  // namespace bough::commit_test
