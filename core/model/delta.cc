#include "core/model/delta.h"

#include <algorithm>

namespace aerie {

using kernels::DeltaShape;
using kernels::DeltaStep;
using kernels::Tensor;

DeltaInputs::DeltaInputs(Plan& plan, int64_t n, const DeltaShape& s) : x(plan.scratch(n, s.channels())) {
  if (s.heads > 0) gates = plan.scratch(n, 2 * s.heads);
}

DeltaScratch::DeltaScratch(Plan& plan, int64_t n, const DeltaShape& s)
    : inputs(plan, n, s), qkv(plan.scratch(n, s.channels())), z_out(plan.scratch(n, 2 * s.values() + 3 * s.convolved)) {
  if (s.heads > 0) raw_gates = plan.scratch(n, 2 * s.heads);
}

// A row's state stands in a buffer until its last child has taken it over. The child that takes the most buffers is the last: so
// few are held, of any tree no more than log2 of its rows and one.
int32_t order_delta_steps(int32_t first, std::span<const int32_t> parents, std::vector<DeltaStep>* steps) {
  const auto n = static_cast<int32_t>(parents.size());
  std::vector<int32_t> wants(parents.size(), 1), last(parents.size(), -1), first_child(parents.size(), -1), next(parents.size(), -1);
  int32_t roots = -1;
  for (int32_t i = n; i-- > 0;) {  // children come behind their parents
    const auto at = static_cast<size_t>(i);
    const int32_t parent = parents[at] < 0 ? -1 : parents[at] - first;
    int32_t& list = parent < 0 ? roots : first_child[static_cast<size_t>(parent)];
    next[at] = list;
    list = i;
    if (parent < 0) continue;
    int32_t& most = wants[static_cast<size_t>(parent)];
    int32_t& heir = last[static_cast<size_t>(parent)];
    const int32_t before = heir < 0 ? 0 : wants[static_cast<size_t>(heir)];
    if (heir < 0 || wants[at] > before) heir = i;
    most = heir == i ? std::max(wants[at], before == 0 ? 0 : before + 1) : std::max(most, wants[at] + 1);
  }
  // What is to be done, the next thing last: a row's turn, or a buffer's end.
  struct Todo {
    int32_t row, buffer;  // row -1: the buffer is free
    bool takes_over;
  };
  std::vector<Todo> todo;
  std::vector<int32_t> free;
  int32_t made = 0;
  const auto push = [&](int32_t list, int32_t heir, int32_t buffer) {
    if (heir >= 0) todo.push_back({heir, buffer, true});
    const size_t from = todo.size();
    for (int32_t c = list; c >= 0; c = next[static_cast<size_t>(c)])
      if (c != heir) todo.push_back({c, buffer, false});
    std::reverse(todo.begin() + static_cast<std::ptrdiff_t>(from), todo.end());
  };
  push(roots, -1, -1);
  while (!todo.empty()) {
    const Todo t = todo.back();
    todo.pop_back();
    if (t.row < 0) {
      free.push_back(t.buffer);
      continue;
    }
    int32_t to = t.buffer;
    if (!t.takes_over) {
      if (free.empty()) free.push_back(made++);
      to = free.back();
      free.pop_back();
      todo.push_back({-1, to, false});
    }
    steps->push_back({first + t.row, t.buffer, to});
    const auto at = static_cast<size_t>(t.row);
    push(first_child[at], last[at], to);
  }
  return made;
}

namespace {

// Of length 1 but for an epsilon in its square.
void add_unit_heads(Plan& plan, const DeltaShape& s, const Tensor& heads, const Tensor& scale) {
  plan.add(kernels::RmsNorm{heads, scale, 1e-6f / static_cast<float>(s.key_dim), heads, s.key_heads});
}

// LFM2's: B * x is convolved, and counts C.
void record_convolution(Plan& plan, const DeltaWeights& w, const DeltaLayers& layers, int64_t at, const kernels::DeltaRows& rows, const DeltaScratch& scratch,
                        const DeltaInputs& inputs, const Tensor& in, const Tensor& x, const Tensor& out) {
  const DeltaShape& s = layers.shape;
  const kernels::StateCache cache = layers.states->cache();
  const auto part = [&](int64_t i) { return kernels::columns(scratch.z_out, i * s.convolved, s.convolved); };
  plan.add(kernels::Linear{in, w.in, {}, {}, scratch.z_out});
  plan.add(kernels::GatedActivate{part(0), kernels::Activation::none, inputs.x, 0, part(2)});
  plan.add(kernels::ShortConv{inputs.x, w.conv, cache, at, s, rows, scratch.qkv});
  plan.add(kernels::KeepLast{inputs.x, cache, at, s, rows});
  plan.add(kernels::GatedActivate{scratch.qkv, kernels::Activation::none, scratch.qkv, 0, part(1)});
  plan.add(kernels::Linear{scratch.qkv, w.out, {}, x, out});
}

}  // namespace

void record_delta(Plan& plan, const DeltaWeights& w, const DeltaLayers& layers, int64_t at, const kernels::DeltaRows& rows, float eps,
                  const DeltaScratch& scratch, const DeltaInputs* kept, const Tensor& in, const Tensor& x, const Tensor& out) {
  const DeltaShape& s = layers.shape;
  const int64_t c = s.channels(), v = s.values(), panels = c / kernels::kPanel;
  const kernels::StateCache cache = layers.states->cache();
  const bool lasts = kept && kept->x.rows == in.rows;
  const DeltaInputs& inputs = lasts ? *kept : scratch.inputs;
  if (s.heads == 0) {
    record_convolution(plan, w, layers, at, rows, scratch, inputs, in, x, out);
    if (kept && !lasts) plan.add(kernels::CopyRows{inputs.x, nullptr, kept->x, nullptr, kept->x.rows});
    return;
  }
  const Tensor qkv = scratch.qkv, z = kernels::columns(scratch.z_out, 0, v), made = kernels::columns(scratch.z_out, v, v);
  plan.add(kernels::Linear{in, kernels::panels(w.in, 0, panels), {}, {}, inputs.x});
  plan.add(kernels::Linear{in, kernels::panels(w.in, panels, v / kernels::kPanel), {}, {}, z});
  plan.add(kernels::Linear{in, w.gates, {}, {}, scratch.raw_gates});
  plan.add(kernels::ShortConv{inputs.x, w.conv, cache, at, s, rows, qkv});
  plan.add(kernels::Activate{qkv, kernels::Activation::silu, qkv});
  add_unit_heads(plan, s, kernels::columns(qkv, 0, s.keys()), layers.q_scale);
  add_unit_heads(plan, s, kernels::columns(qkv, s.keys(), s.keys()), layers.k_scale);
  plan.add(kernels::DeltaGates{scratch.raw_gates, w.decay, inputs.gates});
  if (kept && !lasts) {
    plan.add(kernels::CopyRows{inputs.x, nullptr, kept->x, nullptr, kept->x.rows});
    plan.add(kernels::CopyRows{inputs.gates, nullptr, kept->gates, nullptr, kept->x.rows});
  }
  plan.add(kernels::DeltaRule{inputs.x, qkv, inputs.gates, cache, at, s, rows, made});
  plan.add(kernels::RmsNorm{made, w.norm, eps, made, s.heads});
  plan.add(kernels::GatedActivate{scratch.z_out, kernels::Activation::silu, z});
  plan.add(kernels::Linear{z, w.out, {}, x, out});
}

// q serves nothing but outputs.
void record_delta_states(Plan& plan, const DeltaLayers& layers, const KeptRows& kept, std::span<const Tensor> conv, std::span<const DeltaInputs> inputs) {
  const DeltaShape& s = layers.shape;
  const kernels::StateCache cache = layers.states->cache();
  const DeltaInputs own(plan, kept.n, s);
  const Tensor qkv = s.heads > 0 ? plan.scratch(kept.n, s.channels()) : Tensor{};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) * s.floats();
    plan.add(kernels::CopyRows{inputs[i].x, kept.index, own.x, nullptr, kept.n});
    if (s.heads == 0) {
      plan.add(kernels::KeepLast{own.x, cache, at, s, kept.rows});
      continue;
    }
    plan.add(kernels::CopyRows{inputs[i].gates, kept.index, own.gates, nullptr, kept.n});
    plan.add(kernels::ShortConv{own.x, conv[i], cache, at, s, kept.rows, qkv});
    plan.add(kernels::Activate{qkv, kernels::Activation::silu, qkv});
    add_unit_heads(plan, s, kernels::columns(qkv, s.keys(), s.keys()), layers.k_scale);
    plan.add(kernels::DeltaRule{own.x, qkv, own.gates, cache, at, s, kept.rows, {}});
  }
}

}  // namespace aerie
