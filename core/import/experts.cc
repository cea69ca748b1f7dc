// Mixtures of experts on their way into a package: the matrices of all experts of a layer become one, in the order of their numbers.
#include <algorithm>

#include "core/import/layer.h"

namespace aerie {

namespace {

const ExpertNames& expert_names(const TensorTaker& take, const std::string& layer, const DecoderNames& names) {
  const ExpertNames& e = *names.experts;
  return e.other && take.has(layer + e.other->router + ".weight") ? *e.other : e;
}

// Whether each expert's matrices are tensors of their own.
bool apart(const TensorTaker& take, const std::string& layer, const ExpertNames& e) { return *e.each && !take.has(layer + e.gate_ups); }

}  // namespace

int64_t expert_steps(const TensorTaker& take, const DecoderNames& names, const LlamaConfig& c) {
  const Departures& d = c.departures;
  const std::string first = names.layers + std::to_string(d.dense_layers) + ".";
  return 1 + (apart(take, first, expert_names(take, first, names)) ? 2 * d.experts : 2) + (d.expert_bias ? 3 : 0) + (d.expert_choice ? 1 : 0) +
         (d.shared_ffn > 0 ? 2 : 0) + (d.shared_gate ? 1 : 0);
}

Status LayerImport::experts(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const ExpertNames& e = expert_names(taker_, from, names_);
  const int64_t n = c.departures.experts, h = c.hidden;
  const bool each = apart(taker_, from, e);
  AERIE_TRY(weight(to + "mlp.router", from + e.router + ".weight", n, h));
  if (c.departures.expert_bias) AERIE_TRY(expert_biases(from, to, c));
  if (c.departures.expert_choice) {
    AERIE_TRY(step());
    AERIE_ASSIGN(const auto choice, taker_.take_row(from + e.choice, n));
    AERIE_TRY(sink_.vector(to + "mlp.router.choice", choice));
  }
  if (c.departures.shared_ffn > 0) AERIE_TRY(shared_expert(from, to, c));
  {
    AERIE_ASSIGN(const SourceMatrix all, each ? each_experts(from + e.each, {{e.gate, c.ffn}, {e.up, c.ffn}}, n, h) : gate_ups(from, e, c));
    AERIE_TRY(sink_.weight(to + "mlp.experts.gate_up", all));
  }
  AERIE_ASSIGN(const SourceMatrix all, each       ? each_experts(from + e.each, {{e.down, h}}, n, c.ffn)
                                       : e.turned ? turned_experts(from + e.downs, n, h, c.ffn, false)
                                                  : all_experts(from + e.downs, n, h, c.ffn));
  return sink_.weight(to + "mlp.experts.down", all);
}

Status LayerImport::shared_expert(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const ExpertNames& e = expert_names(taker_, from, names_);
  const int64_t f = c.departures.shared_ffn, h = c.hidden;
  if (*e.shared_gate_up) {
    AERIE_TRY(weight(to + "mlp.shared.gate_up", from + e.shared_gate_up + ".weight", 2 * f, h));
  } else {
    AERIE_ASSIGN(const SourceMatrix gate_up, stack(from, {{e.shared_gate, f}, {e.shared_up, f}}, h));
    AERIE_TRY(sink_.weight(to + "mlp.shared.gate_up", gate_up));
  }
  AERIE_TRY(weight(to + "mlp.shared.down", from + e.shared_down + ".weight", h, f));
  if (!c.departures.shared_gate) return {};
  AERIE_TRY(step());
  AERIE_ASSIGN(auto counts, taker_.take_row(from + e.shared_count + ".weight", h));
  return sink_.weight(to + "mlp.shared.gate", {1, h, std::move(counts)});
}

Status LayerImport::expert_biases(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const ExpertNames& e = expert_names(taker_, from, names_);
  const int64_t n = c.departures.experts, f = c.ffn;
  AERIE_TRY(vector(to + "mlp.router.bias", from + e.router + ".bias", n));
  AERIE_TRY(step());
  std::vector<float> all;
  const bool joined = *e.gate_up_biases;
  for (const int64_t side : {0, 1}) {
    if (joined && side == 1) continue;
    AERIE_ASSIGN(const auto part, taker_.take(from + (joined ? e.gate_up_biases : side ? e.up_biases : e.gate_biases), {n, joined ? 2 * f : f}));
    all.resize(static_cast<size_t>(2 * n * f));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t r = 0; r < (joined ? 2 * f : f); ++r)
        all[static_cast<size_t>(2 * i * f + (joined ? row_apart(r, f) : side * f + r))] = part[static_cast<size_t>(i * (joined ? 2 * f : f) + r)];
  }
  AERIE_TRY(sink_.vector(to + "mlp.experts.gate_up.bias", all, n));
  AERIE_TRY(step());
  AERIE_ASSIGN(const auto downs, taker_.take(from + e.down_biases, {n, c.hidden}));
  return sink_.vector(to + "mlp.experts.down.bias", downs, n);
}

Result<SourceMatrix> LayerImport::gate_ups(const std::string& from, const ExpertNames& e, const LlamaConfig& c) {
  const int64_t n = c.departures.experts, f = c.ffn, h = c.hidden;
  if (e.turned) return turned_experts(from + e.gate_ups, n, 2 * f, h, true);
  if (*e.gate_ups) return all_experts(from + e.gate_ups, n, 2 * f, h);
  AERIE_TRY(step());
  SourceMatrix all = no_rows(h);
  for (const int64_t side : {0, 1}) {
    AERIE_ASSIGN(const SourceMatrix half, taker_.take_matrices(from + (side ? e.ups : e.gates), n, f, h));
    all.rows += half.rows;
    all.values.resize(static_cast<size_t>(2 * n * f * h));  // once: by a tensor that is there
    for (int64_t i = 0; i < n; ++i) std::copy_n(half.values.begin() + i * f * h, f * h, all.values.begin() + (2 * i + side) * f * h);
    all.stored = finer(all.stored, half.stored);
  }
  return all;
}

Result<SourceMatrix> LayerImport::each_experts(const std::string& each, std::initializer_list<Part> parts, int64_t experts, int64_t cols) {
  const auto named = [&](int64_t i, const Part& p) { return each + std::to_string(i) + "." + p.name + ".weight"; };
  const bool there = taker_.has(named(experts - 1, *parts.begin()));
  SourceMatrix all = no_rows(cols);
  for (int64_t i = 0; i < experts; ++i) {
    AERIE_TRY(step());
    for (const Part& p : parts) {
      AERIE_ASSIGN(const SourceMatrix part, taker_.take_matrix(named(i, p), p.rows, cols));
      append(&all, part);
    }
    if (i == 0 && there) all.values.reserve(all.values.size() * static_cast<size_t>(experts));  // not by what a config alone says
  }
  return all;
}

Result<SourceMatrix> LayerImport::all_experts(const std::string& name, int64_t experts, int64_t rows, int64_t cols) {
  AERIE_TRY(step());
  return taker_.take_matrices(name, experts, rows, cols);
}

}  // namespace aerie
