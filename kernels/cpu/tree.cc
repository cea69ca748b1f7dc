// The tree ops: a few hundred nodes, a task each.
#include "kernels/cpu/op_kernels.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::cpu {

int32_t tasks(const ExpandTree&, int) { return 1; }
int32_t tasks(const SelectTree&, int) { return 1; }
int32_t tasks(const PathSlots&, int) { return 1; }
void run(const ExpandTree& op, int32_t, int, Scratch&) { reference::run(op); }
void run(const SelectTree& op, int32_t, int, Scratch&) { reference::run(op); }
void run(const PathSlots& op, int32_t, int, Scratch&) { reference::run(op); }

}  // namespace aerie::kernels::cpu
