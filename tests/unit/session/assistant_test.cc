// Gemma 4's assistant, which reads the target's keys and values: whatever it guesses, the text is the target's. What it computes is held against
// the reference in golden_heads_test.cc.
#include <functional>

#include "core/package/validate.h"
#include "tests/support/forward.h"
#include "tests/support/remade.h"
#include "tests/unit/package/edited_head.h"
#include "tests/unit/session/drafts_support.h"

namespace aerie::test {
namespace {

using kernels::DType;

std::string assistant_head() { return source_dir() + "/tests/golden/heads/assistant_gemma4"; }
std::vector<int32_t> assistant_prompt() { return random_tokens(30, 90, 5); }  // several times as long as a window

class Assistant : public testing::Test {
 protected:
  const std::string target_ = converted(golden("gemma4"), "assistant-target", DType::int8);
  const std::string head_ = converted(assistant_head(), "assistant", DType::int8, target_);
};

TEST_F(Assistant, DraftsChangeNoToken) {
  const auto model = open_model(target_, cpu(2));
  const auto drafter = open_drafter(model, "assistant", head_);
  uint64_t accepted = 0;
  for (const float temperature : {0.0f, 1.0f})
    for (const char* tree : {"chain", "eagle2", "static", "cast", "auto"}) {
      const std::string what = tree + std::string(", temperature ") + std::to_string(temperature);
      SessionOptions o = options_for(drafter, tree, temperature);
      o.sampling.stream = 5;
      o.pass_ms = steady_ms;
      accepted += expect_drafts_change_nothing(model, o, assistant_prompt(), what);
    }
  EXPECT_GT(accepted, 20u) << "nothing was accepted, nothing compared";
}

// Sessions of a batch share its calls, each with a text of its own; what a session drafts is what it drafts alone.
TEST_F(Assistant, SessionsOfABatchReadTheirOwnTexts) {
  const auto model = open_model(target_, cpu(2));
  const auto drafter = open_drafter(model, "assistant", head_);
  EXPECT_GT(expect_batch_as_alone(model, options_for(drafter, "static", 0.9f), 90), 5u) << "nothing was accepted, nothing compared";
}

TEST_F(Assistant, WhatDoesNotFitIsRefusedByName) {
  // Its layers want heads that this target does not have.
  const std::string other = converted(golden("gemma4_keys"), "assistant-other", DType::f32);
  const auto model = open_model(other, cpu(1));
  const auto package = must(Package::open(converted(assistant_head(), "assistant-of-another", DType::f32, other)));
  const Status s = Drafter::open(model, must(load_plugin(drafter_library("assistant")))[0], package, {}).status();
  EXPECT_EQ(s.code(), Code::mismatch) << s.message();
  for (const char* word : {"layer 0", "1 heads of 8", "2 heads of 8"}) EXPECT_NE(s.message().find(word), std::string::npos) << s.message();

  ASSERT_TRUE(package::check_config(*package->drafter()).ok());
  const auto bad = [&](const std::function<void(LlamaConfig*)>& change, const char* word) {
    DrafterConfig d = *package->drafter();
    change(&*d.decoder);
    const Status refused = package::check_config(d);
    EXPECT_EQ(refused.code(), Code::bad_format) << word;
    EXPECT_NE(refused.message().find(word), std::string::npos) << refused.message();
  };
  bad([](LlamaConfig* c) { c->departures.reads_target = false; }, "reads_target");
  bad([](LlamaConfig* c) { c->departures.kv_layers = {0, 1, 2}; }, "kv_layers");
  bad([](LlamaConfig* c) { c->departures.wide_layers = {0, 1, 1}; }, "layer_rope");
  bad([](LlamaConfig* c) { c->qkv_bias = true; }, "qkv_bias");
}

// Such a target keeps a state per text, which rows beside it would have no part of.
TEST_F(Assistant, TargetsWithRecurrentLayersAreRefused) {
  const std::string target = recurrent_model();
  EditedHead head("assistant_gemma4");
  head.options.drafter_for = target;
  const int64_t hidden = 32, vocab = 160, width = 16;  // golden mha's
  head.config["backbone_hidden_size"] = hidden;
  head.config["text_config"]["vocab_size"] = vocab;
  head.add("model.embed_tokens.weight", "F32", {vocab, width});
  head.add("pre_projection.weight", "F32", {width, 2 * hidden});
  head.add("post_projection.weight", "F32", {hidden, width});
  const auto package = head.package();
  const Status s = Drafter::open(open_model(target, cpu(1)), must(load_plugin(drafter_library("assistant")))[0], package, {}).status();
  EXPECT_EQ(s.code(), Code::mismatch) << s.message();
  EXPECT_NE(s.message().find("reads_target: the target has recurrent layers"), std::string::npos) << s.message();
}

}  // namespace
}  // namespace aerie::test
