// From logits or hidden states to the candidates of a propose call: top-k, brought to the host. An LM head's logits
// are written to memory only where somebody wants them all.
//
// A model with a candidate head (package: candidate.down, candidate.up) is asked in two looks. The first, rank
// columns wide, finds more tokens than are wanted; the second scores those with the LM head's own rows. What the
// first look misses costs acceptance, never a token: the target's pass has the full head.
#include <algorithm>
#include <string>

#include "core/drafter/services.h"

namespace aerie {

using kernels::Tensor;

namespace {

constexpr int32_t kLeastRetrieved = 64;  // tokens scored exactly
constexpr int32_t kRetrievedFor1 = 4;    // or so many for each one wanted

Status check(int64_t rows, const aerie_candidates* out) {
  const auto bad = [](const std::string& what) { return error(Code::plugin, "propose: " + what); };
  if (!out) return bad("no candidates to fill");
  const Candidates& c = *out->result;
  const int64_t n = int64_t{c.rows} * c.levels;
  if (c.filled) return bad("candidates given twice");
  if (rows != n) return bad(std::to_string(rows) + " rows of logits, " + std::to_string(n) + " wanted");
  return {};
}

struct Best {
  Tensor token, logp;  // (R, k), token as i32
  int32_t* tokens() const { return static_cast<int32_t*>(token.data); }
  float* logps() const { return static_cast<float*>(logp.data); }
};
Best scratch_for(Plan& plan, int64_t rows, int32_t k) { return {plan.scratch(rows, k), plan.scratch(rows, k)}; }

void bring_home(Plan& plan, const Best& best, Candidates& c) {
  c.filled = true;
  if (c.stay) {
    c.device_token = best.token;
    c.device_logp = best.logp;
    return;
  }
  const auto bytes = static_cast<int64_t>(c.token.size() * 4);
  plan.add(kernels::Download{c.token.data(), best.token.data, bytes});
  plan.add(kernels::Download{c.logp.data(), best.logp.data, bytes});
}

// The best of each row, to rows first, first + every, ... of `best`.
void record_head(Plan& plan, const LmHead& head, const Tensor& hidden, int32_t vocab_used, const aerie_candidates* out,
                 const Best& best, int64_t first, int64_t every) {
  const int32_t k = out->result->width;
  const kernels::LinearTopK op{hidden, head.w, head.bias, k, vocab_used,
                               static_cast<const int32_t*>(head.vocab_map.data), out->keys ? out->keys + first : nullptr,
                               plan.scratch(hidden.rows, kernels::topk_partial_cols(head.w.rows, k)),
                               best.tokens() + first * k, best.logps() + first * k, every};
  plan.add(op);
  plan.add(kernels::MergeTopK{op});
}

}  // namespace

int32_t record_candidates(aerie_plan* handle, const Tensor& logits, const Tensor& vocab_map, aerie_candidates* out) {
  if (const Status s = check(logits.rows, out); !s.ok()) return compute_fail(handle, s.message());
  Plan& plan = *handle->plan;
  Candidates& c = *out->result;
  const LlamaConfig& target = handle->own->target->config();
  if (!vocab_map && logits.cols != target.vocab_size)
    return compute_fail(handle, "propose: logits are not over the target's vocabulary");
  const Best best = scratch_for(plan, logits.rows, c.width);
  plan.add(kernels::TopK{logits, c.width, target.vocab_used, static_cast<const int32_t*>(vocab_map.data), out->keys,
                         best.tokens(), best.logps()});
  bring_home(plan, best, c);
  if (c.want_logits) {
    c.map.clear();
    if (vocab_map) {
      c.map.resize(static_cast<size_t>(logits.cols));
      plan.add(kernels::Download{c.map.data(), vocab_map.data, logits.cols * 4});
    }
    c.vocab = static_cast<int32_t>(logits.cols);
    c.logits.resize(static_cast<size_t>(logits.rows * logits.cols));
    Tensor packed = logits;
    if (logits.stride != logits.cols) {
      packed = plan.scratch(logits.rows, logits.cols);
      plan.add(kernels::CopyRows{logits, nullptr, packed, nullptr, logits.rows});
    }
    plan.add(kernels::Download{c.logits.data(), packed.data, logits.rows * logits.cols * 4});
  }
  return AERIE_D_OK;
}

int32_t record_candidates(aerie_plan* handle, const LmHead& head, const Tensor& hidden, aerie_candidates* out) {
  if (const Status s = check(hidden.rows, out); !s.ok()) return compute_fail(handle, s.message());
  Plan& plan = *handle->plan;
  Candidates& c = *out->result;
  const LlamaConfig& target = handle->own->target->config();
  if (!head.vocab_map && head.w.rows != target.vocab_size)
    return compute_fail(handle, "propose: the LM head has " + std::to_string(head.w.rows) + " rows, the target's vocabulary " +
                                    std::to_string(target.vocab_size));
  if (c.want_logits) {  // the sampled rule needs the drafter's whole distribution
    const Tensor logits = plan.scratch(hidden.rows, head.w.rows);
    plan.add(kernels::Linear{hidden, head.w, head.bias, {}, logits});
    return record_candidates(handle, logits, head.vocab_map, out);
  }
  const Best best = scratch_for(plan, hidden.rows, c.width);
  record_head(plan, head, hidden, target.vocab_used, out, best, 0, 1);
  bring_home(plan, best, c);
  return AERIE_D_OK;
}

int32_t record_level(aerie_plan* handle, int32_t level, const LmHead& head, const Tensor& hidden, aerie_candidates* out) {
  Plan& plan = *handle->plan;
  if (!out) return compute_fail(handle, "propose: no candidates to fill");
  Candidates& c = *out->result;
  const LlamaConfig& target = handle->own->target->config();
  if (c.filled || level != out->next_level || level >= c.levels || hidden.rows != c.rows ||
      head.w.rows != target.vocab_size)
    return compute_fail(handle, "propose: level " + std::to_string(level) + " does not fit: it is the turn of level " +
                                    std::to_string(out->next_level) + " of " + std::to_string(c.levels) + ", of " + std::to_string(c.rows) +
                                    " rows and a head of " + std::to_string(target.vocab_size) + "; these are " +
                                    std::to_string(hidden.rows) + " and " + std::to_string(head.w.rows));
  const int64_t rows = int64_t{c.rows} * c.levels;
  const bool last = ++out->next_level == c.levels;
  if (c.want_logits) {
    if (level == 0) out->logits = plan.scratch(rows, target.vocab_size);
    Tensor own = out->logits;  // rows level, level + levels, ...
    own.data = static_cast<float*>(own.data) + level * own.cols;
    own.rows = c.rows;
    own.stride = c.levels * own.cols;
    plan.add(kernels::Linear{hidden, head.w, head.bias, {}, own});
    return last ? record_candidates(handle, out->logits, Tensor{}, out) : AERIE_D_OK;
  }
  if (level == 0) {
    out->token = plan.scratch(rows, c.width);
    out->logp = plan.scratch(rows, c.width);
  }
  const Best best{out->token, out->logp};
  record_head(plan, head, hidden, target.vocab_used, out, best, level, c.levels);
  if (last) bring_home(plan, best, c);
  return AERIE_D_OK;
}

int32_t record_candidates(aerie_plan* handle, const Model& model, const Tensor& hidden, aerie_candidates* out) {
  if (const Status s = check(hidden.rows, out); !s.ok()) return compute_fail(handle, s.message());
  Plan& plan = *handle->plan;
  Candidates& c = *out->result;
  const LlamaConfig& target = handle->own->target->config();
  if (model.config().departures.logit_cap > 0) return record_candidates(handle, model.logits(plan, hidden), Tensor{}, out);
  const CandidateHead& head = model.candidate_head();
  const int32_t n = std::max(kLeastRetrieved, kRetrievedFor1 * c.width);
  // Very wide trees want most of the best tokens.
  if (!head || c.want_logits || n > kernels::kMaxTopK || head.up.rows != target.vocab_size)
    return record_candidates(handle, LmHead{model.lm_head(), {}, {}}, hidden, out);
  const int64_t rows = hidden.rows;
  const Tensor z = plan.scratch(rows, head.down.rows), approx = plan.scratch(rows, head.up.rows);
  const Tensor exact = plan.scratch(rows, n);
  const Best near = scratch_for(plan, rows, n), best = scratch_for(plan, rows, c.width);
  plan.add(kernels::Linear{hidden, head.down, {}, {}, z});
  plan.add(kernels::Linear{z, head.up, {}, {}, approx});
  plan.add(kernels::TopK{approx, n, target.vocab_used, nullptr, out->keys, near.tokens(), near.logps()});
  plan.add(kernels::LinearRows{hidden, model.lm_head(), near.tokens(), exact});
  plan.add(kernels::Rescore{approx, near.tokens(), near.logps(), exact, c.width, out->keys, best.tokens(), best.logps()});
  bring_home(plan, best, c);
  return AERIE_D_OK;
}

}  // namespace aerie
