// Places where a test kills the process, to see that what it leaves on disk is sound: failPoint("commit.decided").
// Called by store and commit at every step of what must be atomic; does nothing unless armed. boughfs arms it with
// --test-fail-points only.
#pragma once

namespace bough {

/// Reads BOUGH_FAIL_AT and BOUGH_FAIL_TRACE from the environment and arms. Call before other threads start.
///
/// BOUGH_FAIL_AT="name:count": the count-th passing of that name (from 1; without count: the first) sends this process
/// SIGKILL. BOUGH_FAIL_TRACE=path: every passing appends its name as one line to that file, so that a test learns which
/// names an operation passes and how often.
void armFailPoints();

namespace fail_point_detail {
extern bool armed;
void pass(const char* name);
}  // namespace fail_point_detail

/// A point to die at. `name`: lower case words with dots, unique in the source.
inline void failPoint(const char* name) {
  if (fail_point_detail::armed) fail_point_detail::pass(name);
}

}  // namespace bough
