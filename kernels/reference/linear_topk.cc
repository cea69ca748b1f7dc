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
  for (int64_t r = 0; r < head.x.rows; ++r) {
    const int64_t to = r * head.every;
    run(TopK{rows(logits, r, 1), head.k, head.vocab_used, head.vocab_map, head.keys ? head.keys + to : nullptr,
             head.out_token + to * head.k, head.out_logp + to * head.k});
  }
}

}  // namespace aerie::kernels::reference
