// Mixtures of experts on their way into a package: the matrices of all experts of a layer become one, in the order of their numbers.
#include <cmath>
#include <utility>

#include "core/import/expert_matrices.h"

namespace aerie {

namespace {

const ExpertNames& expert_names(const TensorTaker& take, const std::string& layer, const DecoderNames& names) {
  const ExpertNames& e = *names.experts;
  return e.other && take.has(layer + e.other->router + ".weight") ? *e.other : e;
}

}  // namespace

int64_t expert_steps(const LlamaConfig& c) {
  const Departures& d = c.departures;
  return 1 + 2 * d.experts + (d.expert_bias ? 3 : 0) + (d.expert_choice ? 1 : 0) + (d.shared_ffn > 0 ? 2 : 0) + (d.shared_gate ? 1 : 0) + (d.normed_experts ? 5 : 0);
}

Status LayerImport::experts(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const ExpertNames& e = expert_names(taker_, from, names_);
  const int64_t n = c.departures.experts, h = c.hidden;
  AERIE_TRY(weight(to + "mlp.router", from + e.router + ".weight", n, h));
  if (c.departures.expert_bias) AERIE_TRY(expert_biases(from, to, e, c));
  if (c.departures.expert_choice) {
    AERIE_TRY(step());
    AERIE_ASSIGN(const auto choice, taker_.take_row(from + e.choice, n));
    AERIE_TRY(sink_.vector(to + "mlp.router.choice", choice));
  }
  if (c.departures.shared_ffn > 0) AERIE_TRY(shared_expert(from, to, e, c));
  if (c.departures.normed_experts) AERIE_TRY(expert_norms(from, to, e, c));
  // Each expert is a step of what a user sees of the conversion.
  const auto counted = [this](Sink::Experts all) {
    all.read = [this, read = std::move(all.read)](int64_t i) -> Result<std::vector<float>> {
      AERIE_TRY(step());
      return read(i);
    };
    return all;
  };
  AERIE_ASSIGN(ExpertMatrices matrices, expert_matrices(taker_, from, e, c));
  AERIE_TRY(sink_.experts(to + "mlp.experts.gate_up", counted(std::move(matrices.gate_ups))));
  return sink_.experts(to + "mlp.experts.down", counted(std::move(matrices.downs)));
}

Status LayerImport::shared_expert(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c) {
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

// The router's is scaled as its rows are.
Status LayerImport::expert_norms(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c) {
  AERIE_TRY(step());
  AERIE_ASSIGN(auto scale, taker_.take(from + e.router_norm, {c.hidden}));
  for (float& v : scale) v = static_cast<float>(v / std::sqrt(static_cast<double>(c.hidden)));
  AERIE_TRY(sink_.vector(to + "mlp.router.norm", scale));
  AERIE_TRY(vector(to + "mlp.router.gain", from + e.router_gain, c.departures.experts));
  AERIE_TRY(vector(to + "mlp.experts.norm", from + e.norm + ".weight", c.hidden));
  AERIE_TRY(vector(to + "mlp.experts.post_norm", from + e.post_norm + ".weight", c.hidden));
  return vector(to + "mlp.shared.post_norm", from + e.shared_post_norm + ".weight", c.hidden);
}

Status LayerImport::expert_biases(const std::string& from, const std::string& to, const ExpertNames& e, const LlamaConfig& c) {
  const int64_t n = c.departures.experts, f = c.ffn;
  AERIE_TRY(vector(to + "mlp.router.bias", from + e.router + ".bias", n));
  AERIE_TRY(step());
  std::vector<float> all;
  // Each expert's `rows` of `name`, row r to that of `place(r)` among its 2 f.
  const auto put = [&](const char* name, int64_t rows, const auto& place) -> Status {
    AERIE_ASSIGN(const auto part, taker_.take(from + name, {n, rows}));
    all.resize(static_cast<size_t>(2 * n * f));  // the file holds it: not before
    for (int64_t i = 0; i < n; ++i)
      for (int64_t r = 0; r < rows; ++r) all[static_cast<size_t>(2 * i * f + place(r))] = part[static_cast<size_t>(i * rows + r)];
    return {};
  };
  if (*e.gate_up_biases) {
    AERIE_TRY(put(e.gate_up_biases, 2 * f, [f](int64_t r) { return row_apart(r, f); }));
  } else {
    AERIE_TRY(put(e.gate_biases, f, [](int64_t r) { return r; }));
    AERIE_TRY(put(e.up_biases, f, [f](int64_t r) { return f + r; }));
  }
  AERIE_TRY(sink_.vector(to + "mlp.experts.gate_up.bias", all, n));
  AERIE_TRY(step());
  AERIE_ASSIGN(const auto downs, taker_.take(from + e.down_biases, {n, c.hidden}));
  return sink_.vector(to + "mlp.experts.down.bias", downs, n);
}

}  // namespace aerie
