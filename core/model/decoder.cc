#include "core/model/decoder.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "kernels/fp_env.h"

namespace aerie {

using kernels::Tensor;

DecoderScratch::DecoderScratch(Plan& plan, int64_t n, int64_t longest, int64_t hidden, const DecoderShape& s,
                               int64_t ffn)
    : norm(plan.scratch(n, hidden)),
      qkv(plan.scratch(n, int64_t{s.heads + 2 * s.kv_heads} * s.head_dim)),
      attn(plan.scratch(n, int64_t{s.heads} * s.head_dim)),
      gate_up(plan.scratch(n, 2 * ffn)),
      act(plan.scratch(n, ffn)) {
  if (longest <= kernels::kSpanSlots) return;
  // A power of two: a growing text rarely asks for more.
  const auto spans = std::bit_ceil(static_cast<uint64_t>((longest + kernels::kSpanSlots - 1) / kernels::kSpanSlots));
  partial = plan.scratch(n * static_cast<int64_t>(spans), int64_t{s.heads} * (s.head_dim + 2));
}

// Of the scores, rounded as everywhere else: the host's rounding may be another.
static float attention_scale(int64_t head_dim) {
  const kernels::FpEnv env;
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

void record_decoder_layer(Plan& plan, const DecoderLayer& w, const DecoderShape& shape, const kernels::KvCache& cache,
                          int32_t layer, const Rows& rows, const Tensor& angles, DecoderScratch& s, const Tensor& x,
                          const Tensor& out) {
  Tensor attn_in = x;
  if (w.attn_norm) {
    plan.add(kernels::RmsNorm{x, w.attn_norm, shape.rms_eps, s.norm});
    attn_in = s.norm;
  }
  record_decoder_layer_from(plan, w, shape, cache, layer, rows, angles, s, attn_in, x, out);
}

void record_decoder_layer_from(Plan& plan, const DecoderLayer& w, const DecoderShape& shape,
                               const kernels::KvCache& cache, int32_t layer, const Rows& rows, const Tensor& angles,
                               DecoderScratch& s, const Tensor& attn_in, const Tensor& x, const Tensor& out) {
  plan.add(kernels::Linear{attn_in, w.qkv, w.qkv_bias, {}, s.qkv, rows.fast});
  if (w.q_norm) {
    const int64_t q_cols = int64_t{shape.heads} * shape.head_dim, k_cols = int64_t{shape.kv_heads} * shape.head_dim;
    const Tensor heads = kernels::columns(s.qkv, 0, q_cols), keys = kernels::columns(s.qkv, q_cols, k_cols);
    plan.add(kernels::RmsNorm{heads, w.q_norm, shape.rms_eps, heads, shape.heads});
    plan.add(kernels::RmsNorm{keys, w.k_norm, shape.rms_eps, keys, shape.kv_heads});
  }
  plan.add(kernels::RopeAndStore{s.qkv, angles, shape.heads, cache, layer, rows.slot});
  const Tensor q = kernels::columns(s.qkv, 0, int64_t{shape.heads} * shape.head_dim);
  plan.add(kernels::Attention{q, shape.heads, cache, layer, rows.attention, attention_scale(shape.head_dim), s.attn, s.partial});
  if (s.partial) plan.add(kernels::AttentionMerge{s.partial, shape.heads, rows.attention, s.attn});
  plan.add(kernels::Linear{s.attn, w.o, {}, x, out, rows.fast});
  plan.add(kernels::RmsNorm{out, w.mlp_norm, shape.rms_eps, s.norm});
  plan.add(kernels::Linear{s.norm, w.gate_up, {}, {}, s.gate_up, rows.fast});
  plan.add(kernels::GatedActivate{s.gate_up, kernels::Activation::silu, s.act});
  plan.add(kernels::Linear{s.act, w.down, {}, out, out, rows.fast});
}

namespace {

// YaRN (arXiv:2309.00071, section 3.2), as transformers has it: how much of wave i is stretched, by a ramp over the waves' numbers
// between those that turn high_freq_factor and low_freq_factor times in the original context, both rounded away from the ramp.
double yarn_stretched(size_t i, int32_t head_dim, double theta, const RopeScaling& s) {
  const auto wave = [&](double turns) {
    return head_dim * std::log(s.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  const double first = std::max(std::floor(wave(s.high_freq_factor)), 0.0);
  double last = std::min(std::ceil(wave(s.low_freq_factor)), head_dim - 1.0);
  if (last == first) last += 0.001;
  return std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
}

}  // namespace

std::vector<float> rope_inverse_frequencies(int32_t head_dim, double theta, const RopeScaling& scaling) {
  const kernels::WholeFpEnv env;  // the same numbers whatever the host's rounding
  std::vector<float> f(static_cast<size_t>(head_dim / 2));
  for (size_t i = 0; i < f.size(); ++i) {
    // Rounded to f32 first: Hugging Face computes the plain frequencies in f32 and scales those.
    float v = static_cast<float>(1.0 / std::pow(theta, 2.0 * static_cast<double>(i) / head_dim));
    if (scaling.kind == RopeScaling::Kind::linear) {
      v /= scaling.factor;
    } else if (scaling.kind == RopeScaling::Kind::llama3) {
      // Llama 3.1: keep high frequencies, divide low ones by `factor`, blend in between.
      const double wavelength = 2 * std::numbers::pi / v;
      const double low = scaling.original_context / scaling.low_freq_factor;
      const double high = scaling.original_context / scaling.high_freq_factor;
      if (wavelength > low) {
        v /= scaling.factor;
      } else if (wavelength >= high) {
        const double blend = (scaling.original_context / wavelength - scaling.low_freq_factor) /
                             (static_cast<double>(scaling.high_freq_factor) - scaling.low_freq_factor);
        v = static_cast<float>((1 - blend) * v / scaling.factor + blend * v);
      }
    } else if (scaling.kind == RopeScaling::Kind::yarn) {
      const double stretched = yarn_stretched(i, head_dim, theta, scaling);
      v = static_cast<float>(stretched * v / scaling.factor + (1 - stretched) * v);
    }
    f[i] = v;
  }
  return f;
}

}  // namespace aerie
