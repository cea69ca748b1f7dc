// Drafters whose layers are of a family of their own (decoder, aerie.layers/1), as multi-token prediction's are: whatever they guess, the text is
// the target's; what does not fit is refused by name. What they compute is held against the reference in golden_heads_test.cc.
#include <functional>

#include "tests/support/random_drafter.h"
#include "tests/support/remade.h"
#include "tests/unit/session/drafts_support.h"

namespace aerie::test {
namespace {

using kernels::DType;

struct MtpHead {
  std::function<void(LlamaConfig*)> layers = {};  // how its decoder departs from the target's
  std::string without = {};                       // this tensor is not there
  std::function<void(DrafterConfig*)> change = {};
  bool own_embed = false, own_head = false;
};

// A random head for a package; its path, or why there is none.
Result<std::string> mtp_head(const std::string& target, const MtpHead& h) {
  const auto of = must(Package::open(target));
  DrafterConfig d;
  d.plugin_id = "mtp";
  d.target_fingerprint = of->fingerprint();
  d.params = {{"norm_output", h.own_head ? 0.0 : 1.0}};
  d.decoder = random_layers(*of->target(), 1);
  if (h.layers) h.layers(&*d.decoder);
  const LlamaConfig layers = *d.decoder;
  const int64_t wide = layers.hidden, vocab = of->target()->vocab_size;
  if (h.change) h.change(&d);
  std::vector<package::ExpectedTensor> tensors = {{"fc", wide, 2 * wide, true}};
  for (const char* name : {"input_norm", "hidden_norm", "norm"}) tensors.push_back({name, 1, wide, false});
  if (h.own_embed) tensors.push_back({"embed", vocab, wide, true});
  if (h.own_head) tensors.push_back({"lm_head", vocab, wide, true});
  return random_drafter(d, layers, tensors, h.without);
}

TEST(Mtp, DraftsChangeNoToken) {
  const MtpHead heads[] = {
      {},
      {[](LlamaConfig* c) { c->qk_norm = true, c->kv_heads = 2, c->departures.output_gate = true; }, "", {}, true, true},
      {[](LlamaConfig* c) {
         c->departures.experts = 4, c->departures.experts_used = 2, c->departures.shared_ffn = 16, c->departures.shared_gate = true;
         c->departures.windows = {5};
       }}};
  uint64_t accepted = 0;
  for (const std::string& target : {converted(golden("mha"), "mtp-target", DType::int8), recurrent_model(DType::int8)}) {
    const auto model = open_model(target, cpu(2));
    for (const float temperature : {0.0f, 1.0f}) {
      for (const MtpHead& h : heads) {
        const auto drafter = open_drafter(model, "mtp", must(mtp_head(target, h)));
        for (const char* tree : {"chain", "eagle2", "static", "cast", "auto"}) {
          const std::string what = tree + std::string(", head ") + std::to_string(&h - heads) + ", temperature " + std::to_string(temperature);
          SessionOptions o = options_for(drafter, tree, temperature);
          o.sampling.stream = 5;
          o.pass_ms = steady_ms;
          accepted += expect_drafts_change_nothing(model, o, kSavedPrompt, what);
        }
      }
    }
  }
  EXPECT_GT(accepted, 20u) << "nothing was accepted, nothing compared";
}

TEST(Mtp, WhatDoesNotFitIsRefusedByName) {
  const std::string target = converted(golden("mha"), "mtp-refused", DType::f32);
  const auto model = open_model(target, cpu(1));
  const auto says = [&](const MtpHead& h, const std::string& words) {
    SCOPED_TRACE(words);
    const Result<std::string> path = mtp_head(target, h);
    Status s = path.status();
    if (path.ok()) {
      const auto package = Package::open(*path);
      s = package.status();
      if (package.ok()) s = Drafter::open(model, must(load_plugin(drafter_library("mtp")))[0], *package, {}).status();
    }
    ASSERT_FALSE(s.ok());
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
  };
  says({{}, "fc", {}}, "fc");
  says({{}, "hidden_norm", {}}, "hidden_norm");
  says({{}, "layers.0.attn.o", {}}, "layers.0.attn.o");
  says({{}, "rope.frequencies", {}}, "rope.frequencies");
  says({{}, "", [](DrafterConfig* d) { d->decoder.reset(); }}, "decoder");
  says({{}, "", [](DrafterConfig* d) { d->decoder->layers = 65; }}, "layers");
  says({{}, "", [](DrafterConfig* d) { d->decoder->heads = 8; }}, "layers.0.attn.qkv");
  says({{}, "", [](DrafterConfig* d) { d->decoder->kv_heads = 3; }}, "kv_heads");
  says({{}, "", [](DrafterConfig* d) {
          d->decoder->layers = 2;
          d->decoder->departures.delta_layers = {1, 0};
          d->decoder->departures.delta_key_heads = d->decoder->departures.delta_heads = 1;
          d->decoder->departures.delta_key_dim = d->decoder->departures.delta_value_dim = 16, d->decoder->departures.delta_taps = 4;
        }},
       "recurrent");
  says({[](LlamaConfig* c) { c->hidden = 64; }}, "as wide as the target");
}

}  // namespace
}  // namespace aerie::test
