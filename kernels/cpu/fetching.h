// How weights come from memory: in one step, into the first-level cache; or in two, far ahead into the second-level cache, which can
// wait for more lines at once than the first, and into the first shortly before they are read. docs/performance-zen4.md,
// docs/performance.md and docs/performance-amx.md have what either gains.
#pragma once

namespace aerie::kernels::cpu {

bool fetch_in_two_steps();
// Tests and benches: as said, whatever the machine.
void set_fetch_in_two_steps(bool two);

}  // namespace aerie::kernels::cpu
