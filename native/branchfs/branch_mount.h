// A branch mounted in the kernel, whole or one folder of it, with all that lies between its view and the kernel. Store
// holds one for each mounted branch.
#pragma once

#include <memory>
#include <string>

#include "native/branchfs/fuse/mount.h"
#include "native/branchfs/subtree.h"
#include "native/branchfs/view.h"

namespace bough {

class BranchMount {
 public:
  /// Mounts all of `view` (`subtree` null) or the folder that `subtree` shows of it. Errors as Mount::start.
  static Result<std::shared_ptr<BranchMount>> start(std::shared_ptr<View> view, std::unique_ptr<Subtree> subtree,
                                                    const std::string& at, MountOptions options);
  /// As Mount's functions of the same names.
  void stop() { mount_->stop(); }
  bool alive() const { return mount_->alive(); }
  Result<> flush() { return mount_->flush(); }
  void drainInvalidations() { mount_->drainInvalidations(); }
  /// In the ids of the whole branch.
  Invalidator& invalidator();

 private:
  BranchMount(std::shared_ptr<View> view, std::unique_ptr<Subtree> subtree)
      : view_(std::move(view)), subtree_(std::move(subtree)) {}

  std::shared_ptr<View> view_;
  std::unique_ptr<Subtree> subtree_;
  std::unique_ptr<Mount> mount_;  // serves what is above, so it goes first
  std::unique_ptr<SubtreeInvalidator> subtreeInvalidator_;
};

}  // namespace bough
