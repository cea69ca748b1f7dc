// Recurrent layers (gated delta rule, or a convolution) on their way into a package.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/import/layer.h"
#include "kernels/fp_env.h"

namespace aerie {

namespace {

struct Heads {
  int64_t keys, each;  // key heads, and heads of values for each of them
  int64_t key_dim, value_dim;
  explicit Heads(const Departures& d) : keys(d.delta_key_heads), each(d.delta_heads / d.delta_key_heads), key_dim(d.delta_key_dim), value_dim(d.delta_value_dim) {}
  int64_t channels() const { return 2 * keys * key_dim + values(); }
  int64_t values() const { return keys * each * value_dim; }
};

// Heads of `size` numbers, from `first` on: those of each key head together, where they came by turns.
void gather_heads(const Heads& h, int64_t size, float* first) {
  const std::vector<float> turns(first, first + h.keys * h.each * size);
  for (int64_t k = 0; k < h.keys; ++k)
    for (int64_t e = 0; e < h.each; ++e) std::copy_n(turns.begin() + (e * h.keys + k) * size, size, first + (k * h.each + e) * size);
}

// Rows [first, first + n) of `from`, to `to`.
void append_rows(const SourceMatrix& from, int64_t first, int64_t n, SourceMatrix* to) {
  const auto at = from.values.begin() + first * from.cols;
  append(to, {n, from.cols, {at, at + n * from.cols}, from.stored});
}

// Groups of rows that lie one after the other for each key head: all of the first group, then all of the second.
SourceMatrix ungroup(const SourceMatrix& m, const Heads& h, std::initializer_list<int64_t> sizes) {
  SourceMatrix all = no_rows(m.cols);
  int64_t group = 0, first = 0;
  for (const int64_t n : sizes) group += n;
  for (const int64_t n : sizes) {
    for (int64_t k = 0; k < h.keys; ++k) append_rows(m, k * group + first, n, &all);
    first += n;
  }
  return all;
}

// (channels, taps) to (taps, channels).
std::vector<float> turned(const std::vector<float>& conv, int64_t channels, int64_t taps) {
  std::vector<float> made(conv.size());
  for (int64_t ch = 0; ch < channels; ++ch)
    for (int64_t t = 0; t < taps; ++t) made[static_cast<size_t>(t * channels + ch)] = conv[static_cast<size_t>(ch * taps + t)];
  return made;
}

}  // namespace

// [q; k; v; z]
Result<SourceMatrix> LayerImport::delta_rows(const std::string& from, const LlamaConfig& c) {
  const DeltaNames& n = *names_.delta;
  const Heads h(c.departures);
  if (*n.qkvz && taker_.has(from + n.qkvz + ".weight")) {
    AERIE_ASSIGN(const SourceMatrix mixed, take(from + n.qkvz + ".weight", h.channels() + h.values(), c.hidden));
    return ungroup(mixed, h, {h.key_dim, h.key_dim, h.each * h.value_dim, h.each * h.value_dim});
  }
  AERIE_ASSIGN(SourceMatrix all, stack(from, {{n.qkv, h.channels()}, {n.z, h.values()}}, c.hidden));
  if (n.tiled)
    for (const int64_t first : {h.channels() - h.values(), h.channels()}) gather_heads(h, h.value_dim * c.hidden, all.values.data() + first * c.hidden);
  return all;
}

// [b; a]
Result<SourceMatrix> LayerImport::delta_gates(const std::string& from, const LlamaConfig& c) {
  const DeltaNames& n = *names_.delta;
  const Heads h(c.departures);
  const int64_t heads = h.keys * h.each;
  if (taker_.has(from + n.ba + ".weight")) {
    AERIE_ASSIGN(const SourceMatrix mixed, take(from + n.ba + ".weight", 2 * heads, c.hidden));
    return ungroup(mixed, h, {h.each, h.each});
  }
  AERIE_ASSIGN(SourceMatrix all, stack(from, {{n.b, heads}, {n.a, heads}}, c.hidden));
  if (n.tiled)
    for (const int64_t first : {int64_t{0}, heads}) gather_heads(h, c.hidden, all.values.data() + first * c.hidden);
  return all;
}

Result<std::vector<float>> LayerImport::taps(const std::string& name, int64_t channels, int64_t taps, bool original) {
  AERIE_TRY(step());
  const std::vector<int64_t> whole = {channels, 1, taps}, flat = {channels, taps};
  return taker_.take(name, original ? whole : flat);
}

// [B; C; x], as files have it, too.
Status LayerImport::convolution(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const ConvolutionNames& n = *names_.convolution;
  const int64_t h = c.hidden, count = c.departures.delta_taps;
  AERIE_TRY(weight(to + "delta.in", from + n.in + ".weight", 3 * h, h));
  AERIE_ASSIGN(const auto conv, taps(from + n.conv + ".weight", h, count, n.original));
  AERIE_TRY(sink_.vector(to + "delta.conv", turned(conv, h, count), count));
  return weight(to + "delta.out", from + n.out + ".weight", h, h);
}

Status LayerImport::delta(const std::string& from, const std::string& to, const LlamaConfig& c) {
  const DeltaNames& n = *names_.delta;
  const Heads h(c.departures);
  const int64_t heads = h.keys * h.each, count = c.departures.delta_taps;
  AERIE_ASSIGN(const SourceMatrix in, delta_rows(from, c));
  AERIE_TRY(sink_.weight(to + "delta.in", in));
  AERIE_ASSIGN(const SourceMatrix gates, delta_gates(from, c));
  AERIE_TRY(sink_.weight(to + "delta.gates", gates));
  AERIE_ASSIGN(auto conv, taps(from + n.conv + ".weight", h.channels(), count, n.original));
  if (n.tiled) gather_heads(h, h.value_dim * count, conv.data() + (h.channels() - h.values()) * count);
  AERIE_TRY(sink_.vector(to + "delta.conv", turned(conv, h.channels(), count), count));
  AERIE_TRY(step());
  AERIE_ASSIGN(auto decay, taker_.take(from + n.decay, {heads}));
  AERIE_ASSIGN(const auto bias, taker_.take(from + n.dt_bias, {heads}));
  const kernels::WholeFpEnv env;
  if (n.original)
    for (float& v : decay) {
      v = -static_cast<float>(std::exp(static_cast<double>(v)));
      if (!std::isfinite(v)) return error(Code::bad_format, taker_.source_name() + ": tensor " + from + n.decay + ": its exponential is not finite");
    }
  decay.insert(decay.end(), bias.begin(), bias.end());
  if (n.tiled)
    for (const int64_t first : {int64_t{0}, heads}) gather_heads(h, 1, decay.data() + first);
  AERIE_TRY(sink_.vector(to + "delta.decay", decay, 2));
  AERIE_TRY(vector(to + "delta.norm", from + n.norm + ".weight", h.value_dim));
  AERIE_ASSIGN(SourceMatrix out, take(from + n.out + ".weight", c.hidden, h.values()));
  if (n.tiled)
    for (int64_t r = 0; r < c.hidden; ++r) gather_heads(h, h.value_dim, out.values.data() + r * h.values());
  return sink_.weight(to + "delta.out", out);
}

}  // namespace aerie
