#include "core/import/expert_matrices.h"

#include <utility>

namespace aerie {

namespace {

struct Part {
  std::string name;
  int64_t rows;
};

// Tensors of each expert's own, named `each`, its number, a dot and a part's name, stacked by rows.
Result<Sink::Experts> in_tensors_of_their_own(TensorTaker& take, const std::string& each, const std::vector<Part>& parts, int64_t experts, int64_t cols) {
  const auto named = [each](int64_t i, const Part& p) { return each + std::to_string(i) + "." + p.name + ".weight"; };
  Sink::Experts all{experts, 0, cols, no_rows(cols).stored, {}};
  for (const Part& p : parts) all.rows += p.rows;
  for (int64_t i = 0; i < experts; ++i)
    for (const Part& p : parts) {
      AERIE_TRY(take.expect(named(i, p), {p.rows, cols}));
      all.stored = finer(all.stored, take.stored(named(i, p)));
    }
  all.read = [&take, named, parts, cols](int64_t i) -> Result<std::vector<float>> {
    SourceMatrix one = no_rows(cols);
    for (const Part& p : parts) {
      AERIE_ASSIGN(const SourceMatrix part, take.take_matrix(named(i, p), p.rows, cols));
      append(&one, part);
    }
    return std::move(one.values);
  };
  return all;
}

// One or two tensors with a part of each expert.
Result<Sink::Experts> in_tensors_of_all(TensorTaker& take, const std::vector<Part>& parts, int64_t experts, int64_t cols) {
  Sink::Experts all{experts, 0, cols, no_rows(cols).stored, {}};
  for (const Part& p : parts) {
    AERIE_TRY(take.expect(p.name, {experts, p.rows, cols}));
    all.rows += p.rows;
    all.stored = finer(all.stored, take.stored(p.name));
  }
  all.read = [&take, parts](int64_t i) -> Result<std::vector<float>> {
    std::vector<float> values;
    for (const Part& p : parts) {
      AERIE_ASSIGN(auto part, take.part(p.name, i));
      if (values.empty()) values = std::move(part);
      else values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  };
  return all;
}

}  // namespace

Result<ExpertMatrices> expert_matrices(TensorTaker& take, const std::string& layer, const ExpertNames& e, const LlamaConfig& c) {
  const int64_t n = c.departures.experts, f = c.ffn, h = c.hidden;
  const auto both = [](Result<Sink::Experts> gate_ups, Result<Sink::Experts> downs) -> Result<ExpertMatrices> {
    AERIE_TRY(gate_ups.status());
    AERIE_TRY(downs.status());
    return ExpertMatrices{std::move(*gate_ups), std::move(*downs)};
  };
  const std::string gate_ups = layer + e.gate_ups, downs = layer + e.downs;
  if (*e.each && !take.has(gate_ups)) {
    const std::string each = layer + e.each;
    return both(in_tensors_of_their_own(take, each, {{e.gate, f}, {e.up, f}}, n, h), in_tensors_of_their_own(take, each, {{e.down, h}}, n, f));
  }
  if (e.turned) return both(turned_experts(take, gate_ups, n, 2 * f, h, true), turned_experts(take, downs, n, h, f, false));
  if (*e.gate_ups) return both(in_tensors_of_all(take, {{gate_ups, 2 * f}}, n, h), in_tensors_of_all(take, {{downs, h}}, n, f));
  return both(in_tensors_of_all(take, {{layer + e.gates, f}, {layer + e.ups, f}}, n, h), in_tensors_of_all(take, {{downs, h}}, n, f));
}

}  // namespace aerie
