// Mixtures of experts for tests: a dense model whose layers have, in place of their MLP, a router and experts made up here from a seed.
#pragma once

#include "core/package/rope_frequencies.h"
#include "core/package/validate.h"
#include "tests/support/models.h"

namespace aerie::test {

struct Mixture {
  int32_t experts = 8, used = 2;
  bool normed = true;
  kernels::DType dtype = kernels::DType::f32;  // of all matrices but the router
  bool gpt_oss = false;  // with all that its layers have besides: sinks, biases, a limit, windows in every second one
};

// The package of `dense`, a source in f32, with experts: whatever its dtype, the same model with the same fingerprint.
inline std::string with_experts(const std::string& dense, const Mixture& m) {
  const auto from = must(Package::open(converted(dense, "dense", kernels::DType::f32)));
  static std::atomic<int> made{0};
  const std::string path = scratch_dir() + "/mixture-" + std::to_string(made++) + ".aerie";
  LlamaConfig c = *from->target();
  std::vector<float> frequencies = rope_inverse_frequencies(c.head_dim, c.rope_theta, c.rope_scaling);
  frequencies.push_back(c.rope_scaling.attention_factor);
  c.rope_scaling = {};
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  c.departures.experts = m.experts;
  c.departures.experts_used = m.used;
  c.departures.norm_experts = m.normed;
  if (m.gpt_oss) {
    c.qkv_bias = c.departures.o_bias = c.departures.sinks = c.departures.expert_bias = true;
    c.departures.glu_limit = 0.75f;  // of gates here about a third is larger
    for (int32_t l = 0; l < c.layers; ++l) c.departures.windows.push_back(l % 2 ? 0 : 6);
  }
  auto writer = must(PackageWriter::create(path));
  writer->set_name("mixture");
  writer->set_fingerprint("00000000000000" + std::to_string(10 + m.experts) + std::to_string(10 + m.used) + (m.gpt_oss ? "0" : ""));
  writer->set_target(c);
  std::mt19937 random(23);
  for (const package::ExpectedTensor& e : package::expected_tensors(c)) {
    std::vector<float> values(static_cast<size_t>(e.rows * e.cols));
    if (e.name == "rope.frequencies") values = frequencies;
    else if (from->has(e.name)) {
      const kernels::Tensor t = must(from->tensor(e.name));
      for (int64_t i = 0; i < e.rows * e.cols; ++i)
        values[static_cast<size_t>(i)] = e.weight ? kernels::panel16_at(t, i / e.cols, i % e.cols) : static_cast<const float*>(t.data)[i];
    } else {  // wide enough for experts to matter, and for rows to disagree on them
      const float width = 2 / std::sqrt(static_cast<float>(e.cols));
      for (float& v : values) v = std::uniform_real_distribution<float>(-width, width)(random);
    }
    if (!e.weight) {
      must(writer->add_tensor(e.name, kernels::matrix(values.data(), e.rows, e.cols)));
      continue;
    }
    const kernels::DType dtype = e.precise && kernels::has_scales(m.dtype) ? kernels::DType::bf16 : m.dtype;
    std::vector<char> data(static_cast<size_t>(kernels::data_bytes(dtype, kernels::Layout::panel16, e.rows, e.cols)));
    std::vector<char> scales(static_cast<size_t>(kernels::scale_bytes(dtype, e.rows, e.cols)));
    const kernels::Tensor t{data.data(), scales.empty() ? nullptr : scales.data(), e.rows, e.cols, 0, dtype, kernels::Layout::panel16};
    kernels::pack_panel16(values.data(), e.rows, e.cols, dtype, t.data, t.scales);
    must(writer->add_tensor(e.name, t));
  }
  must(writer->finish());
  return path;
}

}  // namespace aerie::test
