#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/noise.h"
#include "kernels/reference/reference.h"

namespace aerie::kernels::reference {
namespace {

struct Candidate {
  float score;
  int32_t id;
};

// Best first, ties to the lower id.
bool better(const Candidate& a, const Candidate& b) { return a.score != b.score ? a.score > b.score : a.id < b.id; }

// The filters of Hugging Face's warpers on candidates sorted best first: top-k, top-p, min-p. Each
// sees the softmax of what the ones before it left.
void filter(std::vector<Candidate>& c, const Sampling& s) {
  if (s.top_k > 0 && static_cast<size_t>(s.top_k) < c.size()) c.resize(static_cast<size_t>(s.top_k));
  const auto weight = [&](size_t i) { return std::exp(static_cast<double>(c[i].score) - c[0].score); };
  if (s.top_p < 1) {
    double total = 0, above = 0;
    for (size_t i = 0; i < c.size(); ++i) total += weight(i);
    size_t kept = 0;
    while (kept < c.size() && (kept == 0 || above < static_cast<double>(s.top_p) * total)) above += weight(kept++);
    c.resize(kept);
  }
  if (s.min_p > 0) {
    size_t kept = 1;
    while (kept < c.size() && weight(kept) >= s.min_p) ++kept;
    c.resize(kept);
  }
}

// The token the target draws at one row, or -1 for a non-finite logit.
int32_t draw(const float* logits, int64_t n, const Sampling& s, int64_t position) {
  std::vector<Candidate> raw, c;
  for (int64_t t = 0; t < n; ++t) {
    if (std::isnan(logits[t]) || logits[t] == INFINITY) return -1;
    if (logits[t] != -INFINITY) raw.push_back({logits[t], static_cast<int32_t>(t)});
  }
  if (raw.empty()) return -1;
  std::sort(raw.begin(), raw.end(), better);
  // A temperature so small that the best logit overflows is greedy.
  if (!(s.temperature > 0) || !std::isfinite(raw[0].score / s.temperature)) return raw[0].id;
  for (const Candidate& r : raw)
    if (const float v = r.score / s.temperature; v != -INFINITY) c.push_back({v, r.id});
  std::sort(c.begin(), c.end(), better);
  filter(c, s);
  for (Candidate& k : c) k.score += gumbel(s.seed, s.stream, position, k.id);
  return std::min_element(c.begin(), c.end(), better)->id;
}

double log_sum_exp(const std::vector<Candidate>& c) {
  double top = -INFINITY, sum = 0;
  for (const Candidate& k : c) top = std::max<double>(top, k.score);
  for (const Candidate& k : c) sum += std::exp(k.score - top);
  return top + std::log(sum);
}

}  // namespace

void run(const TopK& op) {
  for (int64_t r = 0; r < op.logits.rows; ++r) {
    std::vector<Candidate> c;
    bool good = true;
    float top = -INFINITY;
    for (int64_t t = 0; t < op.logits.cols; ++t) {
      const auto id = op.vocab_map ? op.vocab_map[t] : static_cast<int32_t>(t);
      if (id >= op.vocab_used || id < 0) continue;
      const float score = at(op.logits, r, t);
      good = good && std::isfinite(score);
      top = std::max(top, score);
      c.push_back({score, id});
    }
    // A temperature so small that the best logit overflows is no temperature.
    if (good && op.keys && op.keys[r].temperature > 0 && std::isfinite(top / op.keys[r].temperature)) {
      const DrawKey& k = op.keys[r];
      for (Candidate& x : c) x.score = x.score / k.temperature + gumbel(k.seed, k.stream, k.position, x.id);
      std::erase_if(c, [](const Candidate& x) { return x.score == -INFINITY; });
    }
    if (good) std::sort(c.begin(), c.end(), better);
    const double total = good ? log_sum_exp(c) : 0;
    for (int64_t i = 0; i < op.k; ++i) {
      const bool exists = good && static_cast<size_t>(i) < c.size();
      op.out_token[r * op.k + i] = exists ? c[static_cast<size_t>(i)].id : -1;
      op.out_logp[r * op.k + i] = exists ? static_cast<float>(c[static_cast<size_t>(i)].score - total) : -INFINITY;
    }
  }
}

void run(const Walk& op) {
  const int64_t n = std::min<int64_t>(op.vocab_used, op.logits.cols);
  for (int32_t q = 0; q < op.n_seqs; ++q) {
    const WalkSeq& seq = op.seqs[q];
    auto* out = reinterpret_cast<WalkOut*>(static_cast<char*>(op.out) + q * walk_out_bytes(op.max_steps));
    auto* steps = reinterpret_cast<WalkStep*>(out + 1);
    *out = {0, 0};
    int32_t row = seq.root_row;
    while (row >= 0 && out->count < op.max_steps) {
      const float* logits = &at(op.logits, row, 0);
      const int32_t x = draw(logits, n, seq.sampling, seq.root_position + 1 + out->count);
      if (x < 0) {
        *out = {0, 1};
        break;
      }
      std::vector<Candidate> all;
      for (int64_t t = 0; t < n; ++t) all.push_back({logits[t], static_cast<int32_t>(t)});
      steps[out->count++] = {row, x, static_cast<float>(logits[x] - log_sum_exp(all)), 0};
      row = op.first_child[row];
      while (row >= 0 && op.token[row] != x) row = op.next_sibling[row];
    }
  }
}

}  // namespace aerie::kernels::reference
