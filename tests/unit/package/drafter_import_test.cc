// EAGLE heads and llama2.c checkpoints.
#include <cmath>

#include "core/import/convert.h"
#include "core/text/tokenizer.h"
#include "unit/package/fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

struct Head {
  Folder folder;
  LlamaConfig config = small_config();
  Sources tensors = eagle_sources(config);
  std::string more = "\"bias\": false";
  ConvertOptions options;

  explicit Head(DType target_dtype = DType::f32) {
    config.layers = 1;
    EXPECT_TRUE(write_target(folder / "t.aerie", small_config(), target_dtype).ok());
    options.source = folder / "head";
    options.output = folder / "d.aerie";
    options.dtype = DType::f32;
    options.drafter_for = folder / "t.aerie";
  }
  Status run() {
    spit(options.source + "/config.json", eagle_json(config, more));
    spit(options.source + "/model.safetensors", safetensors(tensors));
    return convert(options);
  }
  void refused(Code code, std::initializer_list<const char*> words) {
    const Status s = run();
    EXPECT_EQ(s.code(), code) << s.message();
    for (const char* w : words) EXPECT_NE(s.message().find(w), std::string::npos) << w << " / " << s.message();
    EXPECT_FALSE(fs::exists(options.output));
  }
};

double param(const Package& p, const std::string& name) {
  for (const auto& q : p.drafter()->params)
    if (q.name == name) return q.value;
  return -1;
}

TEST(ImportEagle, Head) {
  Head h;
  h.tensors["fc.bias"] = source("fcb", {8});
  h.more = "\"rope_theta\": 500000.0";  // "bias" absent means true
  const Status s = h.run();
  ASSERT_TRUE(s.ok()) << s.message();
  const auto p = Package::open(h.options.output);
  ASSERT_TRUE(p.ok()) << p.status().message();
  const DrafterConfig& d = *(*p)->drafter();
  EXPECT_EQ(d.plugin_id, "eagle");
  EXPECT_EQ(d.target_fingerprint, kFingerprint);
  EXPECT_EQ(param(**p, "hidden"), 8);
  EXPECT_EQ(param(**p, "heads"), 2);
  EXPECT_EQ(param(**p, "kv_heads"), 1);
  EXPECT_EQ(param(**p, "head_dim"), 4);
  EXPECT_EQ(param(**p, "ffn"), 12);
  EXPECT_EQ(param(**p, "vocab_size"), 20);
  EXPECT_EQ(param(**p, "rope_theta"), 500000);
  EXPECT_FLOAT_EQ(static_cast<float>(param(**p, "rms_eps")), 1e-5f);
  EXPECT_EQ((*p)->tensors().size(), 7u);
  EXPECT_EQ((*p)->tensor("fc")->cols, 16);
  EXPECT_EQ(kernels::panel16_at(*(*p)->tensor("fc"), 7, 15), h.tensors["fc.weight"].values.back());
  EXPECT_EQ(static_cast<const float*>((*p)->tensor("fc.bias")->data)[3], h.tensors["fc.bias"].values[3]);
  EXPECT_EQ(kernels::panel16_at(*(*p)->tensor("layers.0.attn.qkv"), 8, 1),
            h.tensors["layers.0.self_attn.k_proj.weight"].values[1]);
  EXPECT_FALSE((*p)->has("embed"));
}

TEST(ImportEagle, AnOutputBiasMustBeZero) {
  Head h;
  Source& bias = h.tensors["layers.0.self_attn.o_proj.bias"] = {"F32", {8}, std::vector<float>(8)};
  ASSERT_TRUE(h.run().ok());
  fs::remove(h.options.output);
  bias.values[3] = 1;
  h.refused(Code::unsupported, {"layers.0.self_attn.o_proj.bias", "output bias"});
}

TEST(ImportEagle, AnEmbeddingThatIsTheTargetsIsNotStoredTwice) {
  Head own;
  own.tensors["embed_tokens.weight"] = source("other", {20, 8});
  ASSERT_TRUE(own.run().ok());
  EXPECT_TRUE((*Package::open(own.options.output))->has("embed"));
  Head copy(DType::bf16);
  copy.tensors["embed_tokens.weight"] = source("embed", {20, 8});  // what write_target stores
  ASSERT_TRUE(copy.run().ok());
  EXPECT_FALSE((*Package::open(copy.options.output))->has("embed"));
  for (const DType dtype : {DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {  // which hold it to within a step
    Head quantised(dtype);
    quantised.tensors["embed_tokens.weight"] = source("embed", {20, 8});
    ASSERT_TRUE(quantised.run().ok());
    EXPECT_FALSE((*Package::open(quantised.options.output))->has("embed"));
    std::vector<std::string> warnings;
    quantised.options.warnings = &warnings;
    quantised.tensors["embed_tokens.weight"].values[77] += 1;
    ASSERT_TRUE(quantised.run().ok());
    EXPECT_TRUE((*Package::open(quantised.options.output))->has("embed"));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("embed_tokens.weight: differs from the target's embedding"), std::string::npos) << warnings[0];
  }
}

TEST(ImportEagle, RuleZero) {
  for (const auto& [name, t] : eagle_sources(small_config())) {
    if (name != "fc.weight") {
      Head missing;
      missing.tensors.erase(name);
      missing.refused(Code::bad_format, {name.c_str(), "missing"});
    }
    Head shape;
    shape.tensors[name].shape.push_back(1);
    shape.refused(Code::bad_format, {name.c_str(), "shape"});
  }
  Head bias;
  bias.more = "\"bias\": true";
  bias.refused(Code::bad_format, {"fc.bias", "missing"});
  bias.refused(Code::bad_format, {"config.json", "bias is not false"});
  bias.more = "\"bias\": false";  // as some heads that have one say
  bias.tensors["fc.bias"] = source("b", {8});
  EXPECT_TRUE(bias.run().ok());
  EXPECT_TRUE((*Package::open(bias.options.output))->has("fc.bias"));
  Head extra;
  extra.tensors["lm_head.weight"] = source("x", {20, 8});
  extra.refused(Code::bad_format, {"lm_head.weight", "unexpected"});
  Head scaled;
  scaled.more = R"("bias": false, "rope_scaling": {"type": "dynamic", "factor": 2})";
  scaled.refused(Code::unsupported, {"rope_scaling", "dynamic"});
  scaled.more = R"("bias": false, "rope_scaling": {"type": "yarn", "factor": 2, "truncate": false})";
  scaled.refused(Code::unsupported, {"rope_scaling", "truncate"});
  scaled.more = R"("bias": false, "rope_scaling": {"type": "linear", "factor": 2})";
  ASSERT_TRUE(scaled.run().ok());
  EXPECT_EQ(param(**Package::open(scaled.options.output), "rope_scaling"), 1);
  EXPECT_EQ(param(**Package::open(scaled.options.output), "rope_scaling.factor"), 2);
  Head eagle3;
  eagle3.tensors["midlayer.hidden_norm.weight"] = source("x", {8});
  eagle3.refused(Code::bad_format, {"midlayer.input_layernorm.weight", "missing"});
  Head norm;  // half an EAGLE-3 head under its other names
  norm.tensors["layers.0.hidden_norm.weight"] = source("x", {8});
  norm.refused(Code::bad_format, {"layers.0.input_layernorm.weight", "missing"});
  Head stray;
  stray.tensors["layers.0.input_layernorm.weight"] = source("x", {8});
  stray.refused(Code::bad_format, {"layers.0.input_layernorm.weight", "unexpected"});
}

TEST(ImportEagle, ItsTarget) {
  Head none;
  none.options.drafter_for = "";
  none.refused(Code::invalid_argument, {"--drafter-for"});
  Head hidden;
  hidden.config.hidden = 16;
  hidden.tensors = eagle_sources(hidden.config);
  hidden.refused(Code::mismatch, {"hidden_size", "16", "8"});
  Head vocab;
  vocab.config.vocab_size = 21;
  vocab.refused(Code::mismatch, {"vocab_size", "21", "20"});
  Head h;
  ASSERT_TRUE(h.run().ok());
  ConvertOptions o;  // a drafter is no target
  o.source = h.options.source;
  o.output = h.folder / "e.aerie";
  o.drafter_for = h.options.output;
  EXPECT_EQ(convert(o).code(), Code::mismatch);
  // Requantising keeps whom it is for, and can be asked to check.
  o.source = h.options.output;
  o.dtype = DType::int8;
  o.drafter_for = h.folder / "t.aerie";
  ASSERT_TRUE(convert(o).ok());
  EXPECT_EQ((*Package::open(o.output))->drafter()->target_fingerprint, kFingerprint);
  EXPECT_EQ((*Package::open(o.output))->tensor("fc")->dtype, DType::int8);
  o.source = h.folder / "t.aerie";
  EXPECT_EQ(convert(o).code(), Code::mismatch);  // a target is not a drafter
  ConvertOptions again;
  const LlamaConfig other = [] {
    LlamaConfig c = small_config();
    c.layers = 1;
    c.tap_layers = {0};
    return c;
  }();
  spit(h.folder / "m/config.json", llama_json(other));
  spit(h.folder / "m/model.safetensors", safetensors(llama_sources(other)));
  again.source = h.folder / "m";
  again.output = h.folder / "other.aerie";
  ASSERT_TRUE(convert(again).ok());
  o.source = h.options.output;
  o.drafter_for = again.output;
  EXPECT_EQ(convert(o).code(), Code::mismatch);  // made for another target
}

// ---- llama2.c ----

const std::string kModels = std::string(AERIE_SOURCE_DIR) + "/../shared/models/";

Bytes checkpoint(int32_t vocab_sign, std::vector<float>* all = nullptr) {
  const int32_t header[7] = {8, 12, 2, 2, 1, 20 * vocab_sign, 16};
  const int64_t floats = 20 * 8 + 2 * (8 + 64 + 32 + 32 + 64 + 8 + 3 * 96) + 8 + 16 * 4 + (vocab_sign < 0 ? 160 : 0);
  const std::vector<float> v = values("llama2c", floats);
  Bytes file(sizeof header + v.size() * 4);
  std::memcpy(file.data(), header, sizeof header);
  std::memcpy(file.data() + sizeof header, v.data(), v.size() * 4);
  if (all) *all = v;
  return file;
}

TEST(ImportLlama2c, LayoutAndRotaryOrder) {
  const Folder folder;
  std::vector<float> v;
  spit(folder / "m.bin", checkpoint(-1, &v));
  ConvertOptions o;
  o.source = folder / "m.bin";
  o.output = folder / "m.aerie";
  o.dtype = DType::f32;
  const Status s = convert(o);
  ASSERT_TRUE(s.ok()) << s.message();
  auto p = *Package::open(o.output);
  EXPECT_FALSE(p->target()->tied);
  EXPECT_EQ(p->target()->max_context, 16);
  EXPECT_EQ(p->target()->eos_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(p->name(), "m");
  const size_t wq = 160 + 16, wk = wq + 128, wv = wk + 64;
  const auto qkv = *p->tensor("layers.1.attn.qkv");
  // Head 1 of q: pairs (0,1) (2,3) become halves (0,2) and (1,3).
  for (const auto& [to, from] : {std::pair{4, 4}, {5, 6}, {6, 5}, {7, 7}})
    EXPECT_EQ(kernels::panel16_at(qkv, to, 3), v[wq + 64 + static_cast<size_t>(from) * 8 + 3]);
  EXPECT_EQ(kernels::panel16_at(qkv, 8 + 1, 0), v[wk + 32 + 2 * 8]);
  EXPECT_EQ(kernels::panel16_at(qkv, 12 + 1, 0), v[wv + 32 + 1 * 8]);  // v stays
  EXPECT_EQ(kernels::panel16_at(*p->tensor("lm_head"), 19, 7), v.back());
  p.reset();  // Windows replaces no file that is mapped
  spit(folder / "tied.bin", checkpoint(1));
  o.source = folder / "tied.bin";
  std::vector<std::string> warnings;
  o.warnings = &warnings;
  ASSERT_TRUE(convert(o).ok());
  EXPECT_TRUE((*Package::open(o.output))->target()->tied);
  EXPECT_EQ(warnings.size(), 1u);  // no tokenizer
  o.tokenizer = kNoTokenizer;
  ASSERT_TRUE(convert(o).ok());
  EXPECT_EQ(warnings.size(), 1u);
}

TEST(ImportLlama2c, DamagedFiles) {
  const Folder folder;
  const Bytes good = checkpoint(1);
  ConvertOptions o;
  o.source = folder / "m.bin";
  o.output = folder / "m.aerie";
  const auto refused = [&](const Bytes& file) {
    spit(o.source, file);
    const Status s = convert(o);
    EXPECT_EQ(s.code(), Code::bad_format) << s.message();
    EXPECT_EQ(folder.names(), std::vector<std::string>{"m.bin"});
  };
  for (size_t n = 0; n < good.size(); n += n < 64 ? 1 : 97)
    refused(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(n)));
  Bytes more = good;
  more.resize(more.size() + 4);
  refused(more);
  for (int field = 0; field < 7; ++field)
    for (const int32_t v : {0, -1, 1 << 30, INT32_MIN, INT32_MAX}) {
      Bytes file = good;
      std::memcpy(file.data() + field * 4, &v, 4);
      refused(file);
    }
  Bytes nan = good;
  const float bad = NAN;
  std::memcpy(nan.data() + nan.size() / 2, &bad, 3);
  nan[nan.size() / 2 / 4 * 4 + 3] = 0x7f;
  nan[nan.size() / 2 / 4 * 4 + 2] = 0xf0;
  refused(nan);
}

TEST(ImportLlama2c, Stories260K) {
  if (!fs::exists(kModels + "stories260K.bin")) GTEST_SKIP() << "no shared models here";
  const Folder folder;
  std::string fingerprint;
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4}) {
    ConvertOptions o;
    o.source = kModels + "stories260K.bin";
    o.tokenizer = kModels + "tok512.bin";
    o.output = folder / "s.aerie";
    o.dtype = dtype;
    const Status s = convert(o);
    ASSERT_TRUE(s.ok()) << s.message();
    OpenOptions check;
    check.check_data = true;
    const auto p = Package::open(o.output, check);
    ASSERT_TRUE(p.ok()) << p.status().message();
    const LlamaConfig& c = *(*p)->target();
    EXPECT_EQ(c.hidden, 64);
    EXPECT_EQ(c.layers, 5);
    EXPECT_EQ(c.heads, 8);
    EXPECT_EQ(c.kv_heads, 4);
    EXPECT_EQ(c.ffn, 172);
    EXPECT_EQ(c.vocab_size, 512);
    EXPECT_EQ(c.vocab_used, 512);
    EXPECT_EQ(c.max_context, 512);
    EXPECT_TRUE(c.tied);
    const Bytes file = slurp(o.source);
    float first[64];
    std::memcpy(first, file.data() + 28, sizeof first);
    const auto embed = (*p)->tensor("embed");
    const float tolerance = dtype == DType::f32    ? 0
                            : dtype == DType::bf16 ? 0.004f
                            : dtype == DType::int8 ? 0.01f
                                                   : 0.2f;
    for (int i = 0; i < 64; ++i) EXPECT_NEAR(kernels::panel16_at(*embed, 0, i), first[i], tolerance);
    // The last norm ends where the two rotary tables (512 x 4 each) begin.
    float norm;
    std::memcpy(&norm, file.data() + file.size() - 512 * 8 * 4 - 4, 4);
    EXPECT_EQ(static_cast<const float*>((*p)->tensor("norm")->data)[63], norm);
    EXPECT_EQ((*p)->tensor("layers.4.mlp.down")->cols, 172);
    const auto tokenizer = text::Tokenizer::deserialize((*p)->blob("tokenizer"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    EXPECT_EQ((*tokenizer)->vocab_size(), 512);
    if (fingerprint.empty()) fingerprint = (*p)->fingerprint();
    EXPECT_EQ((*p)->fingerprint(), fingerprint);
    RecordProperty("bytes_" + std::to_string(static_cast<int>(dtype)), std::to_string(fs::file_size(o.output)));
  }
  ConvertOptions wrong;
  wrong.source = kModels + "stories260K.bin";
  wrong.tokenizer = kModels + "stories260K.bin";
  wrong.output = folder / "w.aerie";
  EXPECT_FALSE(convert(wrong).ok());
  EXPECT_FALSE(fs::exists(wrong.output));
}

}  // namespace
}  // namespace aerie::test
