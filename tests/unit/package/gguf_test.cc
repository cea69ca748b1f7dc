// GGUF files become the packages that the checkpoints they were made of become; others are refused by name.
#include "unit/package/gguf_fixtures.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <random>

#include "core/import/gguf_file.h"
#include "kernels/narrow_floats.h"
#include "unit/package/conversion_fixture.h"

namespace aerie::test {
namespace {

using kernels::DType;

struct Conversion : ConversionFixture {
  Conversion() : ConversionFixture("model.gguf") {}
  Gguf file(const std::string& arch = "llama") const { return gguf_of(tensors, config, arch); }
  Status run(const Gguf& g) {
    spit(options.source, g.bytes());
    return convert(options);
  }
  void refused(const Gguf& g, Code code, std::initializer_list<const char*> words) { expect_refused(run(g), code, words); }
};

TEST(ImportGguf, IsTheModelOfTheHuggingFaceCheckpoint) {
  for (const bool bias : {false, true})
    for (const char* arch : {"llama", "qwen2", "qwen3"})
      for (const bool tied : {false, true}) {
        SCOPED_TRACE(std::string(arch) + (bias ? ", bias" : "") + (tied ? ", tied" : ""));
        Conversion c;
        c.config.qkv_bias = bias;
        c.config.tied = tied;
        c.config.qk_norm = std::string_view(arch) == "qwen3";
        c.tensors = llama_sources(c.config);
        ConvertOptions hf = c.options;
        hf.source = c.folder / "hf";
        hf.output = c.folder / "hf.aerie";
        spit(hf.source + "/config.json", llama_json(c.config));
        spit(hf.source + "/model.safetensors", safetensors(c.tensors));
        const Status s = convert(hf);
        ASSERT_TRUE(s.ok()) << s.message();
        const Status t = c.run(c.file(arch));
        ASSERT_TRUE(t.ok()) << t.message();
        const auto p = c.open();
        ASSERT_TRUE(p);
        EXPECT_EQ(p->fingerprint(), (*Package::open(hf.output))->fingerprint());
        EXPECT_EQ(p->name(), "model");
        EXPECT_EQ(p->target()->tied, tied);
        EXPECT_EQ(p->target()->max_context, c.config.max_context);
        EXPECT_EQ(p->target()->tap_layers, c.config.tap_layers);
      }
}

TEST(ImportGguf, BlocksHaveLlamaCppsValues) {
  const auto golden = nlohmann::json::parse(slurp(std::string(AERIE_SOURCE_DIR) + "/tests/golden/gguf/blocks.json"));
  EXPECT_EQ(golden.size(), 9u);
  for (const auto& [name, entry] : golden.items()) {
    const GgufType* type = gguf_type(entry["id"].get<uint32_t>());
    ASSERT_TRUE(type && type->read);
    EXPECT_EQ(type->name, name);
    Bytes bytes;
    const auto hex = entry["bytes"].get<std::string>();
    for (size_t i = 0; i < hex.size(); i += 2) bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    const auto want = entry["values"].get<std::vector<float>>();
    const auto blocks = static_cast<int64_t>(bytes.size()) / type->bytes;
    ASSERT_EQ(static_cast<size_t>(blocks * type->elements), want.size()) << name;
    std::vector<float> got(want.size());
    type->read(bytes.data(), blocks, got.data());
    for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6 * (1 + std::fabs(want[i]))) << name << " " << i;
  }
}

// A model `width` wide whose embedding, 20 rows, is made of blocks: their values, and what becomes of them.
struct Embedded : Conversion {
  std::vector<float> want;
  std::shared_ptr<const Package> package;
  kernels::Tensor got;

  explicit Embedded(int32_t width) : want(static_cast<size_t>(20 * width)) {
    config.hidden = config.ffn = width;
    config.heads = 8;
    config.kv_heads = 4;
    config.head_dim = width / 8;
    tensors = llama_sources(config);
  }
  void make(uint32_t type_id, const std::string& blocks, DType dtype) {
    const GgufType* type = gguf_type(type_id);
    Gguf g = file();
    g.tensor("token_embd.weight", {20, config.hidden}, type_id, blocks);
    type->read(reinterpret_cast<const uint8_t*>(blocks.data()), static_cast<int64_t>(blocks.size()) / type->bytes, want.data());
    options.dtype = dtype;
    const Status s = run(g);
    ASSERT_TRUE(s.ok()) << s.message();
    package = open();
    const auto embed = package->tensor("embed");
    ASSERT_TRUE(embed.ok());
    got = *embed;
    EXPECT_EQ(got.dtype, dtype);
  }
  float at(int64_t i) const { return kernels::panel16_at(got, i / config.hidden, i % config.hidden); }
};

// A block of Q4_0 whose extreme value is at -8, as llama.cpp chooses its scale, is one of ours.
TEST(ImportGguf, Q4_0BecomesInt4WithoutLoss) {
  Embedded c(32);
  std::string blocks;
  for (int row = 0; row < 20; ++row) {
    blocks += std::string("\x34\x22", 2);  // 0.0121, and other scales
    blocks.back() = static_cast<char>(0x20 + row % 7);
    for (int i = 0; i < 16; ++i) blocks += static_cast<char>(i == row % 16 ? 0x50 : 17 * (row + 3 * i) + i);
  }
  ASSERT_NO_FATAL_FAILURE(c.make(2, blocks, DType::int4));
  for (int64_t i = 0; i < 20 * 32; ++i) ASSERT_EQ(c.at(i), c.want[static_cast<size_t>(i)]) << i;
}

std::string half_bytes(float v) {
  const uint16_t h = kernels::to_half(v);
  return {static_cast<char>(h & 255), static_cast<char>(h >> 8)};
}

// Codes over the whole range, over a part of it, far from zero, and all the same.
TEST(ImportGguf, Q4_1KeepsEveryValue) {
  Embedded c(64);
  std::mt19937 random(3);
  std::string blocks;
  for (int block = 0; block < 40; ++block) {
    const float scale = block % 10 == 9 ? 0 : 0.003f + 0.0021f * static_cast<float>(block);
    blocks += half_bytes(scale) + half_bytes(block % 4 == 3 ? 2.5f : -7.3f * scale);
    const uint32_t most = block % 3 == 2 ? 7 : 15, least = block % 3 == 2 ? 2 : 0;
    const auto code = [&] { return least + random() % (most - least + 1); };
    for (int i = 0; i < 16; ++i) blocks += static_cast<char>(code() | code() << 4);
  }
  ASSERT_NO_FATAL_FAILURE(c.make(3, blocks, DType::q4_1));
  for (int64_t i = 0; i < 20 * 64; ++i) ASSERT_EQ(c.at(i), c.want[static_cast<size_t>(i)]) << i;
}

// Scales and minima are products there, and halves here.
TEST(ImportGguf, Q4_KKeepsEveryCode) {
  Embedded c(256);
  std::mt19937 random(4);
  std::string blocks;
  for (int block = 0; block < 20; ++block) {
    blocks += half_bytes(0.0004f + 0.00003f * static_cast<float>(block)) + half_bytes(0.0031f);
    for (int i = 0; i < 8; ++i) blocks += static_cast<char>((random() & 63) | (i < 4 ? 0x90 : 0x41));  // of the first groups and, in part, the last
    for (int i = 0; i < 132; ++i) blocks += static_cast<char>(random());
  }
  ASSERT_NO_FATAL_FAILURE(c.make(12, blocks, DType::q4_1));
  for (int64_t first = 0; first < 20 * 256; first += 32) {
    const auto from = c.want.begin() + first;
    const auto [low, high] = std::minmax_element(from, from + 32);
    // Half of what a half's last digit is, of the minimum and of up to fifteen steps.
    const float allowed = (std::fabs(*low) + (*high - *low)) * 0x1p-11f + 0x1p-23f;
    for (int64_t i = first; i < first + 32; ++i)
      ASSERT_NEAR(c.at(i), c.want[static_cast<size_t>(i)], allowed) << i;
  }
}

TEST(ImportGguf, ScalingOfRotaryFrequencies) {
  Conversion c;
  c.config.heads = 1;
  c.config.kv_heads = 1;
  c.config.hidden = c.config.head_dim = 64;
  c.config.rope_theta = 500000;
  c.tensors = llama_sources(c.config);
  Gguf g = c.file();
  std::vector<float> divisors(32);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(500000.0, static_cast<double>(i) / 32);
    const double smooth = (8192 / wave - 1) / 3;
    divisors[i] = static_cast<float>(wave < 2048 ? 1 : wave > 8192 ? 32 : 1 / ((1 - smooth) / 32 + smooth));
  }
  const std::vector<float> divisors_of_llama3 = divisors;
  g.tensor("rope_freqs.weight", {32}, divisors);
  ASSERT_TRUE(c.run(g).ok());
  const RopeScaling r = c.open()->target()->rope_scaling;
  EXPECT_EQ(r.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(r.factor, 32);
  EXPECT_EQ(r.original_context, 8192);
  fs::remove(c.options.output);
  divisors[20] *= 1.1f;
  g.tensor("rope_freqs.weight", {32}, divisors);
  c.refused(g, Code::unsupported, {"rope_freqs.weight"});
  g.forget_tensor("rope_freqs.weight");
  ASSERT_TRUE(c.run(g).ok());
  EXPECT_EQ(c.open()->target()->rope_scaling.kind, RopeScaling::Kind::none);
  for (const char* key : {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {  // the older one, and the one that counts
    g.f32(key, std::string(key).ends_with("factor") ? 4 : 2);
    ASSERT_TRUE(c.run(g).ok());
    EXPECT_EQ(c.open()->target()->rope_scaling.kind, RopeScaling::Kind::linear);
    EXPECT_EQ(c.open()->target()->rope_scaling.factor, std::string(key).ends_with("factor") ? 4 : 2);
  }
  g.text("llama.rope.scaling.type", "yarn");
  g.u32("llama.rope.scaling.original_context_length", 4096);
  ASSERT_TRUE(c.run(g).ok());
  const RopeScaling yarn = c.open()->target()->rope_scaling;
  EXPECT_EQ(yarn.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_context, 4096);
  EXPECT_EQ(yarn.high_freq_factor, 32);
  EXPECT_FLOAT_EQ(yarn.attention_factor, 1.138629f);
  EXPECT_EQ(c.open()->target()->max_context, 16384);
  fs::remove(c.options.output);
  g.f32("llama.rope.scaling.yarn_ext_factor", 0.5f);
  c.refused(g, Code::unsupported, {"yarn_ext_factor"});
  g.text("llama.rope.scaling.type", "none");
  ASSERT_TRUE(c.run(g).ok());
  EXPECT_EQ(c.open()->target()->rope_scaling.kind, RopeScaling::Kind::none);
  fs::remove(c.options.output);
  g.text("llama.rope.scaling.type", "linear");
  g.tensor("rope_freqs.weight", {32}, divisors_of_llama3);
  c.refused(g, Code::unsupported, {"rope_freqs.weight", "another"});
  g.forget_tensor("rope_freqs.weight");
  g.text("llama.rope.scaling.type", "yarn");
  c.refused(g, Code::unsupported, {"yarn"});
}

TEST(ImportGguf, WhatWouldBeAnotherModelIsRefused) {
  const Conversion fine;
  const auto with = [&](auto change) {
    Gguf g = fine.file();
    change(g);
    return g;
  };
  Conversion c;
  c.refused(with([](Gguf& g) { g.text("general.architecture", "gemma"); }), Code::unsupported, {"general.architecture", "\"gemma\""});
  c.refused(with([](Gguf& g) { g.u32("llama.expert_count", 8); }), Code::bad_format, {"llama.expert_used_count: is missing"});
  for (const char* key : {"logit_scale", "residual_scale", "embedding_scale", "attention.scale", "attn_logit_softcapping",
                          "final_logit_softcapping", "attention.clamp_kqv", "attention.max_alibi_bias", "attention.layer_norm_epsilon",
                          "rope.scaling.attn_factor"})
    c.refused(with([&](Gguf& g) { g.f32("llama." + std::string(key), 2); }), Code::unsupported, {key});
  c.refused(with([](Gguf& g) { g.boolean("llama.attention.causal", false); }), Code::unsupported, {"causal"});
  c.refused(with([](Gguf& g) { g.u32("llama.attention.sliding_window", 8); }), Code::unsupported, {"sliding_window"});
  c.refused(with([](Gguf& g) { g.u32("llama.rope.dimension_count", 2); }), Code::unsupported, {"rope.dimension_count"});
  c.refused(with([](Gguf& g) { g.u32("llama.attention.value_length", 8); }), Code::unsupported, {"value_length"});
  c.refused(with([](Gguf& g) { g.u32("split.count", 3); }), Code::unsupported, {"split.count", "--merge"});
  c.refused(with([](Gguf& g) { g.version = 1; }), Code::unsupported, {"version 1"});
  c.refused(with([](Gguf& g) { g.version = 0x03000000; }), Code::unsupported, {"big-endian"});
  c.refused(with([](Gguf& g) { g.forget("llama.block_count"); }), Code::bad_format, {"llama.block_count", "missing"});
  c.refused(with([](Gguf& g) { g.i32s("llama.attention.head_count_kv", {1, 1}); }), Code::bad_format, {"head_count_kv", "list"});
  c.refused(with([](Gguf& g) { g.text("llama.context_length", "long"); }), Code::bad_format, {"context_length", "integer"});
  c.refused(with([](Gguf& g) { g.u32("llama.attention.head_count", 0); }), Code::bad_format, {"head_count"});
  c.refused(with([](Gguf& g) { g.u32("llama.embedding_length", 4000000000u); }), Code::bad_format, {"embedding_length", "4000000000"});
  c.refused(with([](Gguf& g) { g.forget_tensor("blk.1.attn_q.weight"); }), Code::bad_format, {"blk.1.attn_q.weight", "missing"});
  c.refused(with([](Gguf& g) { g.tensor("blk.7.extra", {4}, {1, 2, 3, 4}); }), Code::bad_format, {"blk.7.extra", "unexpected"});
  c.refused(with([](Gguf& g) { g.tensor("output_norm.weight", {4}, {1, 2, 3, 4}); }), Code::bad_format, {"output_norm.weight", "shape"});
  c.refused(with([](Gguf& g) { g.tensor("output_norm.weight", {8}, std::vector<float>(8, NAN)); }), Code::bad_format, {"not finite"});
  c.refused(with([](Gguf& g) { g.tensor("blk.0.ffn_up.weight", {12, 8}, 99, std::string(400, 'x')); }), Code::unsupported, {"type 99"});
  c.refused(with([](Gguf& g) { g.tensor("blk.0.ffn_up.weight", {12, 8}, 8, std::string(400, 'x')); }), Code::bad_format, {"Q8_0", "blocks"});
  c.refused(with([](Gguf& g) { g.tensor("blk.0.ffn_up.weight", {12, 256}, 10, std::string(84 * 12, 'x')); }), Code::bad_format, {"ffn_up", "shape"});
  c.refused(with([](Gguf& g) { g.u32("general.alignment", 3); }), Code::bad_format, {"general.alignment"});
}

TEST(ImportGguf, TextAndItsEndsComeAlong) {
  Conversion c;
  ASSERT_TRUE(c.run(small_gguf(false)).ok());
  auto p = c.open();
  const auto chat = p->blob("chat_template");
  EXPECT_EQ(std::string(chat.begin(), chat.end()), "{{ a template that is not short }}");
  EXPECT_EQ(p->target()->eos_ids, (std::vector<int32_t>{2, 257}));  // named, and <|im_end|>
  EXPECT_EQ(p->target()->vocab_used, 258);
  EXPECT_EQ(p->target()->bos_id, -1);
  const std::string own = p->fingerprint();
  p.reset();  // Windows replaces no file that is mapped
  Gguf g = small_gguf(false);
  g.u32("tokenizer.ggml.bos_token_id", 256);
  g.u32("tokenizer.ggml.eot_token_id", 257);
  g.u32("tokenizer.ggml.eom_token_id", 5);
  ASSERT_TRUE(c.run(g).ok());
  EXPECT_EQ(c.open()->target()->eos_ids, (std::vector<int32_t>{2, 257, 5}));
  EXPECT_EQ(c.open()->target()->bos_id, 256);
  c.options.tokenizer = "none";
  ASSERT_TRUE(c.run(small_gguf(true)).ok());
  EXPECT_TRUE(c.open()->blob("tokenizer").empty());
  g.i32s("tokenizer.ggml.token_type", {77});  // does not matter then
  EXPECT_TRUE(c.run(g).ok());
  EXPECT_EQ(c.open()->target()->vocab_used, 300);
  EXPECT_NE(c.open()->fingerprint(), own);
}

// With the original's tokenizer.json it is the original, and runs its drafters.
TEST(ImportGguf, WithTheOriginalsTokenizerItIsTheOriginal) {
  Conversion c;
  c.config.vocab_size = c.config.vocab_used = 1024;
  c.tensors = llama_sources(c.config);
  const std::string json = std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/llama3/tokenizer.json";
  ConvertOptions hf = c.options;
  hf.source = c.folder / "hf";
  hf.output = c.folder / "hf.aerie";
  spit(hf.source + "/config.json", llama_json(c.config));
  spit(hf.source + "/model.safetensors", safetensors(c.tensors));
  spit(hf.source + "/tokenizer.json", slurp(json));
  const Status s = convert(hf);
  ASSERT_TRUE(s.ok()) << s.message();
  c.options.tokenizer = json;
  const Status t = c.run(c.file());
  ASSERT_TRUE(t.ok()) << t.message();
  EXPECT_EQ(c.open()->fingerprint(), (*Package::open(hf.output))->fingerprint());
}

TEST(ImportGguf, AnEmbeddingThatIsThereTwiceIsTied) {
  Conversion c;
  c.tensors.at("lm_head.weight") = c.tensors.at("model.embed_tokens.weight");
  ASSERT_TRUE(c.run(c.file()).ok());
  EXPECT_TRUE(c.open()->target()->tied);
  fs::remove(c.options.output);
  c.tensors.at("lm_head.weight").values[3] += 1;
  ASSERT_TRUE(c.run(c.file()).ok());
  EXPECT_FALSE(c.open()->target()->tied);
}

TEST(ImportGguf, AnUnreadTypeIsNamed) {
  Conversion c;
  c.config.hidden = c.config.head_dim = 256;
  c.config.heads = c.config.kv_heads = 1;
  c.tensors = llama_sources(c.config);
  Gguf g = c.file();
  g.tensor("blk.0.attn_q.weight", {256, 256}, 11, std::string(256 * 110, 'x'));
  c.refused(g, Code::unsupported, {"blk.0.attn_q.weight", "Q3_K", "Q4_K"});
}

TEST(ImportGguf, TruncatedOrChangedAnywhere) {
  Conversion c;
  std::string file = c.file().bytes();
  for (size_t n = 4; n < file.size(); n += n < 1024 ? 1 : 97) {
    spit(c.options.source, file.substr(0, n));
    const Status s = convert(c.options);
    ASSERT_EQ(s.code(), Code::bad_format) << n << ": " << s.message();
  }
  uint64_t state = 7;
  for (int round = 0; round < 4500; ++round) {  // whatever comes of it, it is said or it is a package
    if (round % 1500 == 0 && round > 0) file = small_gguf(round == 1500).bytes();
    std::string other = file;
    for (int i = 0; i < 3; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      other[(state >> 33) % std::min<size_t>(other.size(), 12000)] = static_cast<char>(state >> 20);
    }
    spit(c.options.source, other);
    const Status s = convert(c.options);
    ASSERT_EQ(fs::exists(c.options.output), s.ok()) << s.message();
    fs::remove(c.options.output);
  }
}

}  // namespace
}  // namespace aerie::test
