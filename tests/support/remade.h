// Models for tests that depart from Llama's architecture: a dense one, remade with tensors made up here from a seed in place of those that it does
// not have.
#pragma once

#include <functional>

#include "core/package/rope_frequencies.h"
#include "core/package/validate.h"
#include "tests/support/models.h"

namespace aerie::test {

// The package of `dense`, a source in f32, as `change` has its config; dtype: of all matrices but those that are precise. fill: of tensors that
// `dense` has not.
inline std::string remade(const std::string& dense, const std::string& fingerprint, kernels::DType own, const std::function<void(LlamaConfig*)>& change,
                          const std::function<void(const std::string& name, std::vector<float>*)>& fill = {}) {
  const auto from = must(Package::open(converted(dense, "dense", kernels::DType::f32)));
  static std::atomic<int> made{0};
  const std::string path = scratch_dir() + "/remade-" + std::to_string(made++) + ".aerie";
  LlamaConfig c = *from->target();
  std::vector<float> frequencies = rope_inverse_frequencies(c.head_dim, c.rope_theta, c.rope_scaling);
  frequencies.push_back(c.rope_scaling.attention_factor);
  c.rope_scaling = {};
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  change(&c);
  auto writer = must(PackageWriter::create(path));
  writer->set_name("remade");
  writer->set_fingerprint(fingerprint);
  writer->set_target(c);
  std::mt19937 random(23);
  for (const package::ExpectedTensor& e : package::expected_tensors(c)) {
    std::vector<float> values(static_cast<size_t>(e.rows * e.cols));
    if (e.name == "rope.frequencies") values = frequencies;
    else if (from->has(e.name)) {
      const kernels::Tensor t = must(from->tensor(e.name));
      for (int64_t i = 0; i < e.rows * e.cols; ++i)
        values[static_cast<size_t>(i)] = e.weight ? kernels::panel16_at(t, i / e.cols, i % e.cols) : static_cast<const float*>(t.data)[i];
    } else if (fill) {
      fill(e.name, &values);
    } else {  // wide enough for experts to matter, and for rows to disagree on them
      const float width = 2 / std::sqrt(static_cast<float>(e.cols));
      for (float& v : values) v = std::uniform_real_distribution<float>(-width, width)(random);
      if (e.name.ends_with("delta.decay"))  // the first row is below 0
        for (int64_t i = 0; i < e.cols; ++i) values[static_cast<size_t>(i)] = -std::fabs(values[static_cast<size_t>(i)]);
    }
    if (!e.weight) {
      must(writer->add_tensor(e.name, kernels::matrix(values.data(), e.rows, e.cols)));
      continue;
    }
    const kernels::DType dtype = e.precise && kernels::has_scales(own) ? kernels::DType::bf16 : own;
    std::vector<char> data(static_cast<size_t>(kernels::data_bytes(dtype, kernels::Layout::panel16, e.rows, e.cols)));
    std::vector<char> scales(static_cast<size_t>(kernels::scale_bytes(dtype, e.rows, e.cols)));
    const kernels::Tensor t{data.data(), scales.empty() ? nullptr : scales.data(), e.rows, e.cols, 0, dtype, kernels::Layout::panel16};
    kernels::pack_panel16(values.data(), e.rows, e.cols, dtype, t.data, t.scales);
    must(writer->add_tensor(e.name, t));
  }
  must(writer->finish());
  return path;
}

// Layers 0 and 2 of golden "mha"'s three are recurrent.
inline std::string recurrent_model(kernels::DType dtype = kernels::DType::f32, const std::string& dense = golden("mha")) {
  return remade(dense, "0000000000000017", dtype, [](LlamaConfig* c) {
    Departures& d = c->departures;
    d.output_gate = true;
    d.delta_layers = {1, 0, 1};
    d.delta_key_heads = 2, d.delta_heads = 4, d.delta_key_dim = 16, d.delta_value_dim = 32, d.delta_taps = 4;
  });
}

}  // namespace aerie::test
