// Packages of drafters that know nothing: tensors are made up from a seed.
#pragma once

#include "core/package/rope_frequencies.h"
#include "core/package/validate.h"
#include "tests/support/models.h"

namespace aerie::test {

// The target's layers as a drafter may have them, so many, with its RoPE listed.
inline LlamaConfig random_layers(const LlamaConfig& target, int32_t layers) {
  LlamaConfig c = target;
  c.layers = layers;
  c.tap_layers.clear(), c.eos_ids.clear();
  c.departures = {};
  c.rope_scaling = {};
  c.rope_scaling.kind = RopeScaling::Kind::listed;
  return c;
}

// `d`, with the tensors of such layers and `more` but for `without`, in f32; its path, or why there is none.
inline Result<std::string> random_drafter(const DrafterConfig& d, const LlamaConfig& layers, const std::vector<package::ExpectedTensor>& more,
                                          const std::string& without = {}) {
  static std::atomic<int> made{0};
  const std::string path = scratch_dir() + "/" + d.plugin_id + "-random-" + std::to_string(made++) + ".aerie";
  std::vector<package::ExpectedTensor> tensors = package::expected_layer_tensors(layers);
  tensors.insert(tensors.end(), more.begin(), more.end());
  std::vector<float> frequencies = rope_inverse_frequencies(layers.head_dim, layers.rope_theta, {});
  frequencies.push_back(1);
  auto writer = must(PackageWriter::create(path));
  writer->set_name(d.plugin_id);
  writer->set_fingerprint("fedcba9876543210");
  writer->set_drafter(d);
  std::mt19937 random(7);
  for (const package::ExpectedTensor& e : tensors) {
    if (e.name == without) continue;
    std::vector<float> values(static_cast<size_t>(e.rows * e.cols));
    const float width = 2 / std::sqrt(static_cast<float>(e.cols));
    for (float& v : values) v = std::uniform_real_distribution<float>(-width, width)(random);
    if (e.name.ends_with("norm"))
      for (float& v : values) v += 1;
    if (e.name == "rope.frequencies") values = frequencies;
    if (!e.weight) {
      AERIE_TRY(writer->add_tensor(e.name, kernels::matrix(values.data(), e.rows, e.cols)));
      continue;
    }
    std::vector<char> data(static_cast<size_t>(kernels::data_bytes(kernels::DType::f32, kernels::Layout::panel16, e.rows, e.cols)));
    const kernels::Tensor t{data.data(), nullptr, e.rows, e.cols, 0, kernels::DType::f32, kernels::Layout::panel16};
    kernels::pack_panel16(values.data(), e.rows, e.cols, t.dtype, t.data, t.scales);
    AERIE_TRY(writer->add_tensor(e.name, t));
  }
  AERIE_TRY(writer->finish());
  return path;
}

}  // namespace aerie::test
