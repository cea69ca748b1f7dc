// DFlash, whose drafts come of blocks that see both ways (aerie.block/1): whatever it guesses, the text is the target's; what does not fit is
// refused by name. What it computes is held against the reference in golden_heads_test.cc.
#include <functional>

#include "core/drafter/services.h"
#include "tests/support/random_drafter.h"
#include "tests/support/remade.h"
#include "tests/unit/session/drafts_support.h"

namespace aerie::test {
namespace {

using kernels::DType;

struct BlockHead {
  int32_t block = 6;
  std::function<void(LlamaConfig*)> layers = {};
};

std::string block_head(const std::string& target, const BlockHead& h) {
  const auto of = must(Package::open(target));
  DrafterConfig d;
  d.plugin_id = "dflash";
  d.target_fingerprint = of->fingerprint();
  d.params = {{"taps", 2}, {"tap.0", 1}, {"tap.1", 2}, {"block", static_cast<double>(h.block)}, {"mask", 3}};
  d.decoder = random_layers(*of->target(), 2);
  if (h.layers) h.layers(&*d.decoder);
  const int64_t wide = of->target()->hidden;
  return must(random_drafter(d, *d.decoder, {{"fc", wide, 2 * wide, true}, {"hidden_norm", 1, wide, false}, {"norm", 1, wide, false}}));
}

TEST(DFlash, DraftsChangeNoToken) {
  const BlockHead heads[] = {{},
                             {2, [](LlamaConfig* c) { c->qkv_bias = true, c->kv_heads = 1; }},
                             {33, [](LlamaConfig* c) { c->qk_norm = true, c->departures.windows = {7, 0}; }},
                             {9, [](LlamaConfig* c) { c->departures.experts = 4, c->departures.experts_used = 2, c->departures.norms = Departures::Norms::both; }}};
  uint64_t accepted = 0;
  for (const std::string& target : {converted(golden("mha"), "dflash-target", DType::int8), recurrent_model(DType::int8)}) {
    const auto model = open_model(target, cpu(2));
    for (const float temperature : {0.0f, 1.0f})
      for (const BlockHead& h : heads) {
        const auto drafter = open_drafter(model, "dflash", block_head(target, h));
        for (const char* tree : {"chain", "eagle2", "static", "backbone", "cast", "auto"}) {
          const std::string what = tree + std::string(", block of ") + std::to_string(h.block) + ", temperature " + std::to_string(temperature);
          SessionOptions o = options_for(drafter, tree, temperature);
          o.sampling.stream = 5;
          o.pass_ms = steady_ms;
          accepted += expect_drafts_change_nothing(model, o, kSavedPrompt, what);
        }
      }
  }
  EXPECT_GT(accepted, 20u) << "nothing was accepted, nothing compared";
}

// Blocks of a batch share a call, each behind a text of its own; what a session drafts is what it drafts alone.
TEST(DFlash, SessionsOfABatchHaveBlocksOfTheirOwn) {
  const std::string target = converted(golden("mha"), "dflash-batch", DType::int8);
  const auto model = open_model(target, cpu(2));
  const auto drafter = open_drafter(model, "dflash", block_head(target, {}));
  // The noise that they share at so high a temperature lets it agree with the target.
  EXPECT_GT(expect_batch_as_alone(model, options_for(drafter, "static", 2.5f), 150), 5u) << "nothing was accepted, nothing compared";
}

// A service's caller may be wrong in any way.
TEST(DFlash, WhatAPluginAsksWronglyIsSaid) {
  const std::string target = converted(golden("mha"), "dflash-wrong", DType::f32);
  const auto model = open_model(target, cpu(1));
  const auto* block = static_cast<const aerie_service_block*>(drafter_service(nullptr, AERIE_SERVICE_BLOCK));
  const auto* layers = static_cast<const aerie_service_layers*>(drafter_service(nullptr, AERIE_SERVICE_LAYERS));
  struct Opened {
    DrafterResources own;
    aerie_drafter_host host{};
    aerie_layers* out = nullptr;
    aerie_drafter_error err{};
    Opened(std::shared_ptr<Model> m, const std::string& package) : own(std::move(m), must(Package::open(package))) {
      own.id = "test";
      own.opening = own.shown_rows = true;
      own.max_sequences = 1;
      host.context = &own;
      err.struct_size = sizeof err;
    }
  };
  const auto refused = [&](const BlockHead& h, int32_t rows, int32_t filler, const char* words) {
    Opened o(model, block_head(target, h));
    EXPECT_NE(block->open(&o.host, &o.own.package_handle, rows, filler, &o.out, &o.err), AERIE_D_OK) << words;
    EXPECT_NE(std::string(o.err.message).find(words), std::string::npos) << o.err.message;
  };
  refused({}, 1, 0, "a block of 1 rows");
  refused({}, 34, 0, "a block of 34 rows");
  refused({}, 6, 160, "filler 160");
  refused({}, 6, -1, "filler -1");
  refused({6, [](LlamaConfig* c) { c->hidden = 64; }}, 6, 0, "hidden: 64");
  refused({6, [](LlamaConfig* c) { c->heads = 1, c->kv_heads = 1; }}, 6, 0, "8 columns together");
  refused({6, [](LlamaConfig* c) { c->departures.reads_target = true; }}, 6, 0, "reads_target");
  {
    Opened o(model, block_head(target, {}));
    ASSERT_EQ(block->open(&o.host, &o.own.package_handle, 6, 0, &o.out, &o.err), AERIE_D_OK) << o.err.message;
    EXPECT_NE(layers->open(&o.host, &o.own.package_handle, &o.out, &o.err), AERIE_D_OK);
    EXPECT_NE(std::string(o.err.message).find("one KV cache"), std::string::npos);
  }
  Opened blocks(model, block_head(target, {})), plain(model, block_head(target, {}));
  ASSERT_EQ(block->open(&blocks.host, &blocks.own.package_handle, 6, 0, &blocks.out, &blocks.err), AERIE_D_OK);
  ASSERT_EQ(layers->open(&plain.host, &plain.own.package_handle, &plain.out, &plain.err), AERIE_D_OK);
  const auto said = [&](Opened& o, const std::function<int32_t(aerie_plan*, aerie_layers*, const aerie_draft_rows*, const aerie_tensor*)>& call) {
    auto plan = must(Plan::create(model->device(), 1 << 16));
    KvSequence kv(o.own.pool, 64, 64);
    must(kv.reserve(3));
    RowsBuilder rows;
    rows.sequence(kv);
    for (int32_t i = 0; i < 3; ++i) rows.plain(i, i);
    aerie_attention attention;
    attention.rows = rows.stage(*plan);
    aerie_draft_rows draft{};
    draft.n = 3;
    draft.attention = &attention;
    aerie_plan handle{plan.get(), &o.own};
    const aerie_tensor x = to_abi(plan->scratch(2, 32));
    EXPECT_EQ(call(&handle, o.out, &draft, &x), AERIE_D_INVALID);
    return plan->status().message();
  };
  const auto feed = [&](auto* p, auto* l, auto* rows, auto* x) { return block->feed(p, l, rows, x); };
  EXPECT_EQ(said(blocks, feed), "drafter test: block feed: shapes do not fit: x (2, 32) for 3 rows, the layers are 32 wide");
  EXPECT_EQ(said(plain, feed), "drafter test: block feed: missing argument, or another drafter's layers");
  EXPECT_EQ(said(blocks, [&](auto* p, auto* l, auto* rows, auto* x) { return block->forward(p, l, rows, x); }),
            "drafter test: block forward: only the roots of a propose have blocks");
  EXPECT_EQ(said(blocks, [&](auto* p, auto*, auto* rows, auto* x) { return block->feed(p, plain.out, rows, x); }),
            "drafter test: block feed: missing argument, or another drafter's layers");
}

}  // namespace
}  // namespace aerie::test
