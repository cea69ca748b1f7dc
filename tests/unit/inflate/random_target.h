// A tiny target with random weights and what the demo model lacks: biases, an LM head of its own, several KV groups,
// padded vocabulary, taps; and the same inflated.
#pragma once

#include <functional>

#include "core/package/validate.h"
#include "tests/bench/inflate/inflater.h"
#include "tests/support/models.h"

namespace aerie::test {

inline LlamaConfig tiny_config() {
  LlamaConfig c;
  c.vocab_size = 96;
  c.vocab_used = 90;
  c.hidden = 64;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 32;
  c.ffn = 96;
  c.max_context = 256;
  c.rms_eps = 3e-6f;
  c.rope_theta = 10000;
  c.qkv_bias = true;
  c.tap_layers = {0, 1};
  return c;
}

inline std::string random_target(const std::string& name, const LlamaConfig& c, kernels::DType dtype) {
  const std::string path = scratch_dir() + "/" + name + ".aerie";
  auto writer = must(PackageWriter::create(path));
  std::mt19937 random(11);
  for (const package::ExpectedTensor& e : package::expected_tensors(c)) {
    std::vector<float> values(static_cast<size_t>(e.rows * e.cols));
    // Wide enough for every layer to matter to the logits.
    const float width = e.weight ? 2 / std::sqrt(static_cast<float>(e.cols)) : 0.5f, middle = e.name.ends_with("norm") ? 1.0f : 0.0f;
    for (float& v : values) v = middle + std::uniform_real_distribution<float>(-width, width)(random);
    if (!e.weight) {
      must(writer->add_tensor(e.name, kernels::matrix(values.data(), 1, e.cols)));
      continue;
    }
    std::vector<char> data(static_cast<size_t>(kernels::data_bytes(dtype, kernels::Layout::panel16, e.rows, e.cols)));
    std::vector<char> scales(static_cast<size_t>(kernels::scale_bytes(dtype, e.rows, e.cols)));
    kernels::Tensor t{data.data(), scales.empty() ? nullptr : scales.data(), e.rows, e.cols, 0, dtype, kernels::Layout::panel16};
    kernels::pack_panel16(values.data(), e.rows, e.cols, dtype, t.data, t.scales);
    must(writer->add_tensor(e.name, t));
  }
  writer->set_name(name);
  writer->set_fingerprint("0123456789abcdef");
  writer->set_target(c);
  must(writer->finish());
  return path;
}

struct Twins {
  std::shared_ptr<const Package> small, big;
};

inline Twins tiny_twins(kernels::DType dtype, const inflate::Shape& shape) {
  const std::string name = "tiny-" + std::to_string(static_cast<int>(dtype));
  const std::string big = scratch_dir() + "/" + name + "-big.aerie";
  Twins t;
  t.small = must(Package::open(random_target(name, tiny_config(), dtype)));
  must(inflate::inflate_target({t.small, shape, 5, big}));
  t.big = must(Package::open(big));
  return t;
}

}  // namespace aerie::test
