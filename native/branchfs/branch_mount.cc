// See branch_mount.h.
#include "native/branchfs/branch_mount.h"

#include <utility>

namespace bough {

Result<std::shared_ptr<BranchMount>> BranchMount::start(std::shared_ptr<View> view, std::unique_ptr<Subtree> subtree,
                                                        const std::string& at, MountOptions options) {
  std::shared_ptr<BranchMount> made(new BranchMount(std::move(view), std::move(subtree)));  // NOLINT: private
  FileSystem& shown = made->subtree_ ? static_cast<FileSystem&>(*made->subtree_) : *made->view_;
  BOUGH_ASSIGN(made->mount_, Mount::start(shown, at, std::move(options)));
  if (made->subtree_) {
    made->subtreeInvalidator_ =
        std::make_unique<SubtreeInvalidator>(made->subtree_->folder(), made->mount_->invalidator());
  }
  return made;
}

Invalidator& BranchMount::invalidator() {
  return subtreeInvalidator_ ? static_cast<Invalidator&>(*subtreeInvalidator_) : mount_->invalidator();
}

}  // namespace bough
