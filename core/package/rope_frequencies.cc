#include "core/package/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/fp_env.h"

namespace aerie {

namespace {

// YaRN (arXiv:2309.00071, section 3.2), as transformers has it: how much of wave i is stretched, by a ramp over the waves' numbers
// between those that turn high_freq_factor and low_freq_factor times in the original context, both rounded away from the ramp if it
// is one of whole waves ("truncate").
double yarn_stretched(size_t i, int32_t head_dim, double theta, const RopeScaling& s, bool whole_waves) {
  const auto wave = [&](double turns) {
    return head_dim * std::log(s.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  const double begin = wave(s.high_freq_factor), end = wave(s.low_freq_factor);
  const double first = std::max(whole_waves ? std::floor(begin) : begin, 0.0);
  double last = std::min(whole_waves ? std::ceil(end) : end, head_dim - 1.0);
  if (last == first) last += 0.001;
  return std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
}

}  // namespace

std::vector<float> rope_inverse_frequencies(int32_t head_dim, double theta, const RopeScaling& scaling, bool whole_waves) {
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
      const double stretched = yarn_stretched(i, head_dim, theta, scaling, whole_waves);
      v = static_cast<float>(stretched * v / scaling.factor + (1 - stretched) * v);
    }
    f[i] = v;
  }
  return f;
}

}  // namespace aerie
