// TopK and the exact walk. The row kernels (draw.h) and the scalar exp and log used here give the same
// bits on every ISA, so a draw is a function of logits and key alone.
#include "kernels/cpu/draw.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/op_kernels.h"
#include "kernels/cpu/scores.h"
#include "kernels/cpu/task_scratch.h"
#include "kernels/host_draw.h"
#include "kernels/scalar_math.h"

namespace aerie::kernels::cpu {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();

// Places select_best needs: it collects candidates and cuts them back to k whenever the room is used up.
int64_t select_room(int64_t k) { return 4 * k + 128; }

// The k best of x, sorted, into c (select_room(k) places); -inf is no candidate. Returns how many.
// With a map, ids and ties are those of map[i].
int64_t select_best(const float* x, int64_t n, int64_t k, const int32_t* map, Candidate* c) {
  int64_t count = 0;
  float threshold = kLowest;
  for (int64_t at = 0; at < n;) {
    const int64_t before = count;
    at = collect_row(x, at, n, threshold, c, &count, select_room(k));
    if (map)
      for (int64_t i = before; i < count; ++i) c[i].id = map[c[i].id];
    if (at < n) {
      std::nth_element(c, c + k - 1, c + count, better);
      count = k;
      threshold = c[k - 1].score;  // an equal score may still win by its id
    }
  }
  const int64_t have = std::min(k, count);
  std::partial_sort(c, c + have, c + count, better);
  return have;
}

double weight(const Candidate& c, float top) { return static_cast<double>(exp_own(c.score - top)); }

double mass(const Candidate* first, const Candidate* last, float top) {
  double sum = 0;
  for (; first != last; ++first) sum += weight(*first, top);
  return sum;
}

// Moves the smallest set of best candidates whose weights reach `goal` to the front; returns its size,
// at least one, all when they do not reach it. Halves the range that holds the end of the set instead
// of sorting: a nucleus of a flat distribution is most of the vocabulary.
int64_t cut_top_p(Candidate* c, int64_t count, float top, double goal) {
  int64_t low = 0, high = count;  // the set ends in [low, high]; `above` is the weight of the first `low`
  double above = 0;
  while (high - low > 32) {
    const int64_t middle = low + (high - low) / 2;
    std::nth_element(c + low, c + middle, c + high, better);
    const double with_half = above + mass(c + low, c + middle, top);
    if (with_half >= goal) {
      high = middle;
    } else {
      above = with_half;
      low = middle;
    }
  }
  std::sort(c + low, c + high, better);
  while (low < high && (low == 0 || above < goal)) above += weight(c[low++], top);
  return low;
}

// Hugging Face's warpers: top-k, then top-p, then min-p, each seeing the softmax of what the ones before
// it left. score: logits / temperature; best: the largest. Returns how many remain in c (room for n + slack).
int64_t filter(const float* score, int64_t n, Candidate best, const Sampling& s, Candidate* c) {
  int64_t count = -1;  // not collected yet: all
  const float top = best.score;
  if (s.top_k > 0 && s.top_k < n) count = select_best(score, n, s.top_k, nullptr, c);
  if (s.top_p < 1 && count >= 0) {
    count = cut_top_p(c, count, top, static_cast<double>(s.top_p) * mass(c, c + count, top));
  } else if (s.top_p < 1) {
    // A nucleus is mostly small: look only at what is near the best, further if that does not suffice.
    const double goal = static_cast<double>(s.top_p) * static_cast<double>(sum_exp_row(score, n, top));
    for (float distance : {3.0f, 6.0f, 12.0f, kInf}) {
      count = 0;
      collect_row(score, 0, n, std::max(top - distance, kLowest), c, &count, n + kCollectSlack);
      if (distance < kInf && mass(c, c + count, top) < goal) continue;
      count = cut_top_p(c, count, top, goal);
      break;
    }
  }
  if (s.min_p > 0) {
    if (count < 0) {
      count = 0;
      const float nearest = s.min_p < 1 ? log_positive(std::max(s.min_p, 1e-37f)) - 0.1f : 0.0f;
      collect_row(score, 0, n, std::max(top + nearest, kLowest), c, &count, n + kCollectSlack);
    }
    count = std::remove_if(c, c + count, [&](const Candidate& k) { return !(exp_own(k.score - top) >= s.min_p); }) - c;
    if (count == 0) c[count++] = best;
  }
  return count;
}

// argmax of score + G over the candidates, ties to the lowest id.
int32_t draw_candidates(const Candidate* c, int64_t count, const NoiseKey& key) {
  Candidate winner{-kInf, std::numeric_limits<int32_t>::max()};
  alignas(64) int32_t ids[64] = {};
  alignas(64) float noise[64];
  for (int64_t first = 0; first < count; first += 64) {
    const int64_t n = std::min<int64_t>(64, count - first);
    for (int64_t i = 0; i < n; ++i) ids[i] = c[first + i].id;
    gumbel_ids(key, ids, n, noise);
    for (int64_t i = 0; i < n; ++i) {
      const Candidate k{c[first + i].score + noise[i], c[first + i].id};
      if (better(k, winner)) winner = k;
    }
  }
  return winner.id;
}

bool filtered(const Sampling& s, int64_t n) { return (s.top_k > 0 && s.top_k < n) || s.top_p < 1 || s.min_p > 0; }

// The token the target draws at one row; best: the largest logit.
int32_t draw(const float* logits, int64_t n, const Sampling& s, int64_t position, const Candidate& best,
             Scratch& scratch) {
  const float top = best.score / s.temperature;
  // A temperature so small that the best logit overflows is greedy too.
  if (!(s.temperature > 0) || !(std::fabs(top) < kInf)) return best.id;
  const NoiseKey key{s.seed, s.stream, position};
  if (!filtered(s, n)) return draw_row(logits, n, s.temperature, key, best.id);
  const int64_t padded = round_up(n, 16),
                room = std::max(n + kCollectSlack, s.top_k > 0 && s.top_k < n ? select_room(s.top_k) : 0);
  auto* score =
      static_cast<float*>(scratch.get(static_cast<size_t>(padded) * 4 + static_cast<size_t>(room) * sizeof(Candidate)));
  auto* c = reinterpret_cast<Candidate*>(score + padded);
  scale_row(logits, s.temperature, nullptr, n, score);
  return draw_candidates(c, filter(score, n, {top, best.id}, s, c), key);
}

}  // namespace

int32_t tasks(const TopK& op, int) { return static_cast<int32_t>(op.logits.rows); }

void run(const TopK& op, int32_t r, int, Scratch& scratch) {
  const float* logits = static_cast<const float*>(op.logits.data) + r * op.logits.stride;
  int32_t* token = op.out_token + int64_t{r} * op.k;
  float* logp = op.out_logp + int64_t{r} * op.k;
  std::fill(token, token + op.k, -1);
  std::fill(logp, logp + op.k, -kInf);
  const int64_t n = op.vocab_map ? op.logits.cols : std::min<int64_t>(op.logits.cols, op.vocab_used);
  const DrawKey* key = op.keys ? &op.keys[r] : nullptr;
  const int64_t padded = round_up(n, 64), room = select_room(op.k), blocks = (n + kTopKBlock - 1) / kTopKBlock;
  auto* c = static_cast<Candidate*>(scratch.get(static_cast<size_t>(room) * sizeof(Candidate) +
                                                static_cast<size_t>(padded) * 8 +
                                                static_cast<size_t>(blocks) * sizeof(BlockSum)));
  auto* score = reinterpret_cast<float*>(c + room);
  float* noise = score + padded;
  auto* sums = reinterpret_cast<BlockSum*>(noise + padded);
  const float* x = logits;
  float top;
  if (op.vocab_map) {  // unused ids: neither candidates nor part of the sum
    if (!used_logits(logits, op.vocab_map, op.vocab_used, n, score, &top)) return;
    x = score;
  } else if (!finite_row(logits, n, &top)) {
    return;
  }
  if (is_noisy(key, top)) {
    noisy_scores(x, 0, op.vocab_map, n, *key, noise, score);
    x = score;
  }
  const int64_t have = select_best(x, n, op.k, op.vocab_map, c);
  if (have == 0) return;
  sum_exp_blocks(x, n, sums);
  const float log_total = log_sum(sums, blocks, c[0].score);
  for (int64_t i = 0; i < have; ++i) {
    token[i] = c[i].id;
    logp[i] = (c[i].score - c[0].score) - log_total;
  }
}

int32_t tasks(const Walk& op, int) { return op.n_seqs; }

void run(const Walk& op, int32_t q, int, Scratch& scratch) {
  const int64_t n = std::min<int64_t>(op.vocab_used, op.logits.cols);
  const WalkSeq& seq = op.seqs[q];
  auto* out = reinterpret_cast<WalkOut*>(static_cast<char*>(op.out) + q * walk_out_bytes(op.max_steps));
  auto* steps = reinterpret_cast<WalkStep*>(out + 1);
  *out = {0, 0};
  for (int32_t row = seq.root_row; row >= 0 && out->count < op.max_steps;) {
    const float* logits = static_cast<const float*>(op.logits.data) + row * op.logits.stride;
    Candidate best;
    if (!max_row(logits, n, &best) || best.id < 0) {  // id < 0: every token is masked
      *out = {0, 1};
      return;
    }
    const int32_t x = draw(logits, n, seq.sampling, seq.root_position + 1 + out->count, best, scratch);
    const float logp = (logits[x] - best.score) - log_positive(sum_exp_row(logits, n, best.score));
    steps[out->count++] = {row, x, logp, 0};
    row = op.first_child[row];
    while (row >= 0 && op.token[row] != x) row = op.next_sibling[row];
  }
}

}  // namespace aerie::kernels::cpu

namespace aerie::kernels {

bool sum_on_host(std::span<const float> logits, HostLogits* out) {
  const auto n = static_cast<int64_t>(logits.size());
  cpu::Candidate best;
  if (!cpu::max_row(logits.data(), n, &best) || best.id < 0) return false;
  *out = {best.score, log_positive(cpu::sum_exp_row(logits.data(), n, best.score))};
  return true;
}

int32_t draw_on_host(std::span<const float> logits, const Sampling& sampling, int64_t position) {
  const auto n = static_cast<int64_t>(logits.size());
  cpu::Candidate best;
  if (!cpu::max_row(logits.data(), n, &best) || best.id < 0) return -1;
  cpu::TaskScratch scratch;
  return cpu::draw(logits.data(), n, sampling, position, best, scratch.get());
}

}  // namespace aerie::kernels
