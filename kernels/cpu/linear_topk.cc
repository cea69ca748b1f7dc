// An LM head whose logits stay in the cache: a task computes those of a range of the vocabulary and keeps each row's
// sums and best candidates. They go to `partial`, per row: BlockSum of every block; then for every range a
// RangeBest and k candidates, best first.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/linear.h"
#include "kernels/cpu/scores.h"

namespace aerie::kernels::cpu {
namespace {

constexpr float kNothing = std::numeric_limits<float>::lowest();
// Multiply-adds of a task where that is no less than a block, some tens of microseconds.
constexpr int64_t kTaskWork = 1000000;

struct RangeBest {
  float top;      // largest logit; NaN: one is not finite
  int32_t count;  // of the candidates that follow
};
static_assert(sizeof(RangeBest) == 8 && sizeof(BlockSum) == 8 && sizeof(Candidate) == 8);

// How an op is cut, by its shape alone.
struct Cut {
  int64_t vocab;  // places that count
  int64_t range;  // places of a range, whole blocks
  explicit Cut(const LinearTopK& op)
      : vocab(op.vocab_map ? op.w.rows : std::clamp<int64_t>(op.vocab_used, 0, op.w.rows)) {
    const int64_t fit = std::min(kTaskWork / std::max<int64_t>(op.w.cols * op.x.rows, 1), op.w.rows / 2);
    range = std::max(topk_least_range(op.k), fit / kTopKBlock * kTopKBlock);
  }
  int64_t ranges() const { return (vocab + range - 1) / range; }
  int64_t blocks() const { return (vocab + kTopKBlock - 1) / kTopKBlock; }
};

// Of row r; null: no noise.
const DrawKey* key_of(const LinearTopK& op, int64_t r) {
  return op.keys && op.keys[r * op.every].temperature > 0 ? op.keys + r * op.every : nullptr;
}

// Row r of `partial`.
struct Partial {
  BlockSum* sums;
  RangeBest* ranges;
  int64_t k;
  Partial(const LinearTopK& op, const Cut& cut, int64_t r)
      : sums(reinterpret_cast<BlockSum*>(static_cast<float*>(op.partial.data) + r * op.partial.stride)),
        ranges(reinterpret_cast<RangeBest*>(sums + cut.blocks())),
        k(op.k) {}
  RangeBest& range(int64_t i) const { return ranges[i * (1 + k)]; }
  Candidate* candidates(int64_t i) const { return reinterpret_cast<Candidate*>(&range(i) + 1); }
};

// The k best candidates offered so far, best first. Their ids are places; equal scores go to the lower token.
class BestList {
 public:
  BestList(Candidate* c, int64_t count, int64_t k, const int32_t* map) : c_(c), count_(count), k_(k), map_(map) {}
  int64_t count() const { return count_; }
  // What is below it has no chance.
  float threshold() const { return count_ == k_ ? c_[k_ - 1].score : kNothing; }
  bool offer(const Candidate& x) {
    const auto before = [this](const Candidate& a, const Candidate& b) {
      return better({a.score, token(a)}, {b.score, token(b)});
    };
    if (count_ == k_ && !before(x, c_[k_ - 1])) return false;
    count_ += count_ < k_;
    Candidate* at = std::upper_bound(c_, c_ + count_ - 1, x, before);
    std::move_backward(at, c_ + count_ - 1, c_ + count_);
    *at = x;
    return true;
  }
  int32_t token(const Candidate& x) const { return map_ ? map_[x.id] : x.id; }

 private:
  Candidate* c_;
  int64_t count_, k_;
  const int32_t* map_;
};

// Offers all of x, places from `first` on, whose blocks' sums are known. True if any was taken.
bool offer_all(const float* x, int64_t first, int64_t n, const BlockSum* sums, BestList& list) {
  Candidate found[3 * kCollectSlack];  // few at a time: each lot may raise the threshold
  bool taken = false;
  for (int64_t block = 0; block < n; block += kTopKBlock, ++sums) {
    const int64_t end = std::min<int64_t>(n, block + kTopKBlock);
    for (int64_t at = block; at < end && sums->top >= list.threshold();) {
      int64_t count = 0;
      at = collect_row(x, at, end, list.threshold(), found, &count, std::size(found));
      for (int64_t i = 0; i < count; ++i)
        taken |= list.offer({found[i].score, static_cast<int32_t>(first + found[i].id)});
    }
  }
  return taken;
}

}  // namespace

int32_t tasks(const LinearTopK& op, int) { return static_cast<int32_t>(Cut(op).ranges()); }

void run(const LinearTopK& op, int32_t task, int, Scratch& scratch) {
  const Cut cut(op);
  const int64_t rows = op.x.rows, k = op.k, stride = cut.range + kPanel;  // rows apart, so that none share a cache set
  const int64_t first = task * cut.range, n = std::min(cut.range, cut.vocab - first);
  Linear linear{op.x, panels(op.w, first / kPanel, (n + kPanel - 1) / kPanel), {}, {}, {}};
  if (op.bias) linear.bias = columns(op.bias, first, linear.w.rows);
  // What this thread has seen in other ranges lets it pass over most of this one: its best stay in scratch.
  const int64_t best_bytes = rows * k * static_cast<int64_t>(sizeof(Candidate));
  const PreparedRows prepared = prepare_rows(linear, best_bytes + (rows + rows * stride + cut.range) * 4, scratch);
  auto* best = static_cast<Candidate*>(prepared.room);  // (R, k)
  auto* counts = reinterpret_cast<int32_t*>(best + rows * k);
  auto* logits = reinterpret_cast<float*>(counts + rows);  // (R, range)
  float* noise = logits + rows * stride;
  if (!prepared.kept) std::fill(counts, counts + rows, 0);
  linear.out = Tensor{logits, nullptr, rows, linear.w.rows, stride};
  linear_range(linear, 0, round_up(n, kPanel) / kPanel, prepared.rows);
  const int32_t* map = op.vocab_map ? op.vocab_map + first : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    float* x = logits + r * stride;
    const Partial partial(op, cut, r);
    RangeBest& range = partial.range(task);
    range.count = 0;
    if (!(map ? used_logits(x, map, op.vocab_used, n, x, &range.top) : finite_row(x, n, &range.top))) {
      range.top = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    if (const DrawKey* key = key_of(op, r)) noisy_scores(x, first, map, n, *key, noise, x);
    BlockSum* sums = partial.sums + first / kTopKBlock;
    sum_exp_blocks(x, n, sums);
    BestList list(best + r * k, counts[r], k, op.vocab_map);
    if (!offer_all(x, first, n, sums, list)) continue;
    counts[r] = static_cast<int32_t>(list.count());
    const Candidate* own = best + r * k;
    Candidate* end = std::copy_if(own, own + counts[r], partial.candidates(task),
                                  [&](const Candidate& c) { return c.id >= first && c.id < first + n; });
    range.count = static_cast<int32_t>(end - partial.candidates(task));
  }
}

int32_t tasks(const MergeTopK& op, int) { return static_cast<int32_t>(op.head.x.rows); }

void run(const MergeTopK& op, int32_t r, int threads, Scratch& scratch) {
  const LinearTopK& head = op.head;
  const Cut cut(head);
  const Partial partial(head, cut, r);
  const int64_t k = head.k;
  int32_t* token = head.out_token + r * head.every * k;
  float* logp = head.out_logp + r * head.every * k;
  std::fill(token, token + k, -1);
  std::fill(logp, logp + k, -kInf);
  float top = -kInf;
  for (int64_t i = 0; i < cut.ranges(); ++i) {
    if (std::isnan(partial.range(i).top)) return;
    top = std::max(top, partial.range(i).top);
  }
  if (const DrawKey* key = key_of(head, r); key && top > -kInf && !is_noisy(key, top)) {
    // Only now is it known that this row should have had no noise: once more. A matter of absurd temperatures.
    LinearTopK again = head;
    again.x = rows(head.x, r, 1);
    again.partial = rows(head.partial, r, 1);
    again.keys = nullptr;
    again.out_token = token;
    again.out_logp = logp;
    scratch.forget();
    for (int32_t task = 0; task < tasks(again, threads); ++task) run(again, task, threads, scratch);
    return run(MergeTopK{again}, 0, threads, scratch);
  }
  Candidate best[kMaxTopK];
  BestList list(best, 0, k, head.vocab_map);
  for (int64_t i = 0; i < cut.ranges(); ++i)
    for (int64_t j = 0; j < partial.range(i).count && list.offer(partial.candidates(i)[j]); ++j) {}
  if (list.count() == 0) return;
  const float log_total = log_sum(partial.sums, cut.blocks(), best[0].score);
  for (int64_t i = 0; i < list.count(); ++i) {
    token[i] = list.token(best[i]);
    logp[i] = (best[i].score - best[0].score) - log_total;
  }
}

}  // namespace aerie::kernels::cpu
