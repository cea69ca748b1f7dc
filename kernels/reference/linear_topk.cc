#include <vector>

#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {

// Nothing to keep in a cache here: the second of the two ops does it all.
void run(const LinearTopK&) {}

void run(const MergeTopK& op) {
  const LinearTopK& head = op.head;
  std::vector<float> all(static_cast<size_t>(head.x.rows * head.w.rows));
  const Tensor logits = matrix(all.data(), head.x.rows, head.w.rows);
  run(Linear{head.x, head.w, head.bias, {}, logits});
  run(TopK{logits, head.k, head.vocab_used, head.vocab_map, head.keys, head.out_token, head.out_logp});
}

}  // namespace aerie::kernels::reference
