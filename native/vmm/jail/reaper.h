// The first process of a machine tree's PID namespace. Used by jail.cc.
//
// The kernel kills a whole PID namespace when its first process ends. Machines end in any order, and a child must
// outlive the machine that it was forked from; so none of them may be the first. This process is: it runs nothing that
// a guest can reach, holds one end of a pipe, and ends when no machine of the tree is left.
#pragma once

namespace bough::vmm {

/// Never returns. `living`: the reading end of a pipe whose writing end every machine holds and nobody writes to.
[[noreturn]] void reap(int living);

}  // namespace bough::vmm
