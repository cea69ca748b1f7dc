// Checkpoints to packages: right values in the right places, and Rule 0 for everything else.
#include <nlohmann/json.hpp>
#include <set>

#include "core/import/inspect.h"
#include "core/import/taps.h"
#include "core/text/tokenizer.h"
#include "unit/package/conversion_fixture.h"

namespace aerie::test {
namespace {

using kernels::DType;

struct Checkpoint : ConversionFixture {
  std::string more;

  Checkpoint() : ConversionFixture("model") {}
  void write() {
    spit(options.source + "/config.json", llama_json(config, more));
    spit(options.source + "/model.safetensors", safetensors(tensors));
  }
  Status run() {
    write();
    return convert(options);
  }
  void refused(Code code, std::initializer_list<const char*> words) { expect_refused(run(), code, words); }
};

float at(const Package& p, const std::string& name, int64_t row, int64_t col) {
  const auto t = p.tensor(name);
  if (!t.ok()) return -1e9f;
  return t->layout == kernels::Layout::panel16 ? kernels::panel16_at(*t, row, col)
                                               : static_cast<const float*>(t->data)[row * t->stride + col];
}

TEST(ImportLlama, ValuesLandWhereTheyBelong) {
  for (const char* format : {"F32", "BF16", "F16"}) {
    Checkpoint c;
    c.config.qkv_bias = true;
    c.tensors = llama_sources(c.config, format);
    const Status s = c.run();
    ASSERT_TRUE(s.ok()) << s.message();
    const auto p = c.open();
    ASSERT_TRUE(p);
    const auto expect = [&](const std::string& to, int64_t first_row, const std::string& from, int64_t rows,
                            int64_t cols) {
      const std::vector<float> v = c.tensors.at(from).values;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < cols; ++k)
          ASSERT_EQ(at(*p, to, first_row + r, k), v[static_cast<size_t>(r * cols + k)]) << from << format << r << k;
    };
    const std::string l = "model.layers.1.";
    expect("embed", 0, "model.embed_tokens.weight", 20, 8);
    expect("lm_head", 0, "lm_head.weight", 20, 8);
    expect("norm", 0, "model.norm.weight", 1, 8);
    expect("layers.1.attn_norm", 0, l + "input_layernorm.weight", 1, 8);
    expect("layers.1.mlp_norm", 0, l + "post_attention_layernorm.weight", 1, 8);
    expect("layers.1.attn.qkv", 0, l + "self_attn.q_proj.weight", 8, 8);
    expect("layers.1.attn.qkv", 8, l + "self_attn.k_proj.weight", 4, 8);
    expect("layers.1.attn.qkv", 12, l + "self_attn.v_proj.weight", 4, 8);
    expect("layers.1.attn.o", 0, l + "self_attn.o_proj.weight", 8, 8);
    expect("layers.1.mlp.gate_up", 0, l + "mlp.gate_proj.weight", 12, 8);
    expect("layers.1.mlp.gate_up", 12, l + "mlp.up_proj.weight", 12, 8);
    expect("layers.1.mlp.down", 0, l + "mlp.down_proj.weight", 8, 12);
    EXPECT_EQ(at(*p, "layers.1.attn.qkv.bias", 0, 8), c.tensors.at(l + "self_attn.k_proj.bias").values[0]);
    EXPECT_EQ(p->name(), "model");
    EXPECT_EQ(p->target()->head_dim, 4);
    EXPECT_EQ(p->target()->bos_id, 1);
    EXPECT_EQ(p->target()->eos_ids, (std::vector<int32_t>{2, 3}));
    EXPECT_EQ(p->target()->rms_eps, 1e-5f);
    EXPECT_EQ(c.warnings.size(), 1u);  // no tokenizer
  }
}

TEST(ImportLlama, TheFingerprintIsTheModels) {
  Checkpoint a;
  ASSERT_TRUE(a.run().ok());
  const std::string fingerprint = a.open()->fingerprint();
  Checkpoint b;  // the same weights released in bf16, converted to int4
  b.tensors = llama_sources(b.config, "BF16");
  b.options.dtype = DType::int4;
  ASSERT_TRUE(b.run().ok());
  EXPECT_EQ(b.open()->fingerprint(), fingerprint);
  Checkpoint c;
  c.tensors.at("model.norm.weight").values[3] += 1;
  ASSERT_TRUE(c.run().ok());
  EXPECT_NE(c.open()->fingerprint(), fingerprint);
  Checkpoint d;
  d.more = "\"rope_theta\": 20000";
  ASSERT_TRUE(d.run().ok());
  EXPECT_NE(d.open()->fingerprint(), fingerprint);
  // Requantising keeps it.
  ConvertOptions again;
  again.source = a.options.output;
  again.output = a.folder / "int8.aerie";
  again.dtype = DType::int8;
  again.compress = true;
  ASSERT_TRUE(convert(again).ok());
  const auto p = Package::open(again.output);
  ASSERT_TRUE(p.ok()) << p.status().message();
  EXPECT_EQ((*p)->fingerprint(), fingerprint);
  EXPECT_EQ((*p)->tensor("embed")->dtype, DType::int8);
  const auto v = a.tensors.at("model.embed_tokens.weight").values;
  EXPECT_NEAR(at(**p, "embed", 19, 7), v.back(), 0.02);
}

TEST(ImportLlama, EmbeddingAndHeadMayHaveADtypeOfTheirOwn) {
  for (const bool tied : {false, true}) {
    Checkpoint c;
    c.config.tied = tied;
    c.tensors = llama_sources(c.config);
    c.options.dtype = DType::int4;
    c.options.head_dtype = DType::int8;
    ASSERT_TRUE(c.run().ok());
    ConvertOptions again;  // as the others, then not
    again.source = c.options.output;
    again.output = c.folder / "int4.aerie";
    again.dtype = DType::int4;
    ASSERT_TRUE(convert(again).ok());
    ConvertOptions back = c.options;
    back.source = again.output;
    back.output = c.folder / "back.aerie";
    ASSERT_TRUE(convert(back).ok());
    for (const auto& [file, head] : {std::pair{c.options.output, DType::int8}, {again.output, DType::int4}, {back.output, DType::int8}}) {
      const auto p = Package::open(file);
      ASSERT_TRUE(p.ok()) << p.status().message();
      EXPECT_EQ((*p)->tensor("embed")->dtype, head);
      if (!tied) { EXPECT_EQ((*p)->tensor("lm_head")->dtype, head); }
      EXPECT_EQ((*p)->tensor("layers.0.mlp.down")->dtype, DType::int4);
      EXPECT_EQ((*p)->fingerprint(), c.open()->fingerprint());
    }
  }
  ConvertOptions drafter;  // Medusa's and Hydra's own heads
  drafter.dtype = DType::int4;
  drafter.head_dtype = DType::int8;
  EXPECT_EQ(drafter.dtype_of("heads.3.lm_head", DType::f32), DType::int8);
  EXPECT_EQ(drafter.dtype_of("heads.3.0.linear", DType::f32), DType::int4);
  Checkpoint bad;
  bad.options.head_dtype = DType::i32;
  bad.refused(Code::invalid_argument, {"dtype must be"});
}

TEST(ImportLlama, RuleZero) {
  const std::string l = "model.layers.1.";
  for (const char* name :
       {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight", "model.layers.1.mlp.up_proj.weight",
        "model.layers.0.input_layernorm.weight", "model.layers.1.self_attn.v_proj.weight"}) {
    Checkpoint c;
    c.tensors.erase(name);
    c.refused(Code::bad_format, {name, "missing"});
  }
  for (const char* name : {"model.layers.2.mlp.up_proj.weight", "model.layers.0.self_attn.q_norm.weight",
                           "model.layers.1.mlp.up_proj.bias", "score.weight"}) {
    Checkpoint c;
    c.tensors[name] = source("x", {8});
    c.refused(Code::bad_format, {name, "unexpected"});
  }
  for (const auto& [name, t] : llama_sources(small_config())) {
    Checkpoint c;
    std::vector<int64_t> shape = t.shape;
    shape[0] += 1;
    c.tensors[name] = source("x", shape);
    c.refused(Code::bad_format, {name.c_str(), "shape"});
    shape = t.shape;  // right size, wrong rank
    shape.push_back(1);
    c.tensors[name] = source("x", shape);
    c.refused(Code::bad_format, {name.c_str(), "shape"});
  }
  Checkpoint c;
  c.tensors[l + "self_attn.rotary_emb.inv_freq"] = source("x", {2});
  EXPECT_TRUE(c.run().ok());  // older exports hold it; it follows from theta
}

TEST(ImportLlama, ValuesMustBeFinite) {
  Checkpoint c;
  c.tensors.at("model.norm.weight").values[0] = NAN;
  c.refused(Code::bad_format, {"model.norm.weight", "finite"});
}

TEST(ImportLlama, TiedHeads) {
  Checkpoint c;
  c.config.tied = true;
  c.tensors = llama_sources(c.config);
  ASSERT_TRUE(c.run().ok());
  EXPECT_TRUE(c.open()->target()->tied);
  EXPECT_FALSE(c.open()->has("lm_head"));
  Checkpoint same;  // stored although tied
  same.config.tied = true;
  same.tensors = llama_sources(same.config);
  same.tensors["lm_head.weight"] = same.tensors["model.embed_tokens.weight"];
  ASSERT_TRUE(same.run().ok());
  EXPECT_EQ(same.open()->fingerprint(), c.open()->fingerprint());
  Checkpoint lie;
  lie.config.tied = true;
  lie.refused(Code::mismatch, {"lm_head.weight", "tie_word_embeddings"});
}

TEST(ImportLlama, OutputBias) {
  Checkpoint c;
  c.config.qkv_bias = true;
  c.tensors = llama_sources(c.config);
  for (const char* i : {"0", "1"})
    c.tensors["model.layers." + std::string(i) + ".self_attn.o_proj.bias"] = {"F32", {8}, std::vector<float>(8)};
  Checkpoint without;
  without.config.qkv_bias = true;
  without.tensors = llama_sources(without.config);
  ASSERT_TRUE(c.run().ok() && without.run().ok());
  EXPECT_EQ(c.open()->fingerprint(), without.open()->fingerprint()) << "zeros change nothing";
  EXPECT_FALSE(c.open()->target()->departs());
  for (const bool others : {true, false}) {
    Checkpoint d;
    d.config.qkv_bias = others;
    d.tensors = llama_sources(d.config);
    for (const char* i : {"0", "1"})
      d.tensors["model.layers." + std::string(i) + ".self_attn.o_proj.bias"] = c.tensors.at("model.layers.1.self_attn.o_proj.bias");
    d.tensors["model.layers.1.self_attn.o_proj.bias"].values[7] = 1;
    ASSERT_TRUE(d.run().ok());
    auto p = d.open();
    EXPECT_TRUE(p->target()->departures.o_bias);
    EXPECT_EQ(static_cast<const float*>(p->tensor("layers.0.attn.o.bias")->data)[7], 0);
    EXPECT_EQ(static_cast<const float*>(p->tensor("layers.1.attn.o.bias")->data)[7], 1);
    EXPECT_NE(p->fingerprint(), without.open()->fingerprint());
    d.tensors.erase("model.layers.0.self_attn.o_proj.bias");
    p.reset();  // Windows does not remove what is mapped
    fs::remove(d.options.output);
    d.refused(Code::bad_format, {"layers.0.self_attn.o_proj.bias", "missing"});
  }
}

TEST(ImportLlama, RopeKinds) {
  Checkpoint c;
  c.more = R"("rope_scaling": {"type": "linear", "factor": 4.0})";
  ASSERT_TRUE(c.run().ok());
  EXPECT_EQ(c.open()->target()->rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(c.open()->target()->rope_scaling.factor, 4.0f);
  Checkpoint d;  // transformers 5
  d.more = R"("rope_theta": null, "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
  ASSERT_TRUE(d.run().ok());
  EXPECT_EQ(d.open()->target()->rope_scaling.kind, RopeScaling::Kind::llama3);
  EXPECT_EQ(d.open()->target()->rope_theta, 500000.0f);
  d.more = R"("rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"rope_theta": 500000.0})";
  ASSERT_TRUE(d.run().ok());
  EXPECT_EQ(d.open()->target()->rope_scaling.kind, RopeScaling::Kind::linear);
  Checkpoint e;
  e.more = R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0})";
  ASSERT_TRUE(e.run().ok());
  EXPECT_EQ(e.open()->target()->rope_theta, 1000000.0f);
}

TEST(ImportLlama, Yarn) {
  const auto run = [](const std::string& scaling) {
    Checkpoint c;
    c.more = R"("rope_scaling": {"rope_type": "yarn", )" + scaling + "}";
    EXPECT_TRUE(c.run().ok());
    return *c.open()->target();
  };
  const int32_t said = Checkpoint().config.max_context;
  LlamaConfig c = run(R"("factor": 4.0)");
  EXPECT_EQ(c.rope_scaling.original_context, said);
  EXPECT_EQ(c.max_context, 4 * said);
  EXPECT_EQ(c.rope_scaling.low_freq_factor, 1);
  EXPECT_EQ(c.rope_scaling.high_freq_factor, 32);
  EXPECT_FLOAT_EQ(c.rope_scaling.attention_factor, 1.138629f);
  c = run(R"("factor": 2.0, "original_max_position_embeddings": 16, "beta_fast": 16, "beta_slow": 2, "attention_factor": 1.5)");
  EXPECT_EQ(c.rope_scaling.original_context, 16);
  EXPECT_EQ(c.max_context, std::max(said, 32));
  EXPECT_EQ(c.rope_scaling.low_freq_factor, 2);
  EXPECT_EQ(c.rope_scaling.high_freq_factor, 16);
  EXPECT_EQ(c.rope_scaling.attention_factor, 1.5f);
  EXPECT_FLOAT_EQ(run(R"("factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0)").rope_scaling.attention_factor, 1);
  // Another factor of attention is another model.
  std::set<std::string> prints;
  for (const char* more : {"", R"(, "attention_factor": 1.0)", R"(, "attention_factor": 1.5)"}) {
    Checkpoint named;
    named.more = std::string(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0)") + more + "}";
    ASSERT_TRUE(named.run().ok());
    EXPECT_TRUE(prints.insert(named.open()->fingerprint()).second) << more;
  }
  Checkpoint absurd;
  absurd.more = R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0, "beta_fast": 1, "beta_slow": 2})";
  absurd.refused(Code::bad_format, {"config.json", "rope_scaling.high_freq_factor"});
}

// No parameter of a package says that: its frequencies do.
TEST(ImportLlama, YarnWithoutRoundingIsListed) {
  for (const bool truncate : {true, false}) {
    Checkpoint c;
    c.more = std::string(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 1.5, "beta_slow": 0.7, "truncate": )") +
             (truncate ? "true}" : "false}");
    ASSERT_TRUE(c.run().ok());
    const auto p = c.open();
    EXPECT_FALSE(p->target()->departs());
    EXPECT_EQ(p->target()->rope_scaling.kind, truncate ? RopeScaling::Kind::yarn : RopeScaling::Kind::listed);
    EXPECT_EQ(p->has("rope.frequencies"), !truncate);
  }
}

TEST(ImportLlama, WhatItDoesNotKnowItRefusesByName) {
  const struct {
    const char* more;
    std::initializer_list<const char*> words;
    Code code = Code::unsupported;
  } cases[] = {
      {R"("rope_scaling": {"rope_type": "longrope", "factor": 2.0})", {"config.json", "rope_scaling", "short_factor", "missing"}, Code::bad_format},
      {R"("rope_scaling": {"rope_type": "dynamic", "factor": 2.0})", {"config.json", "rope_scaling", "dynamic"}},
      {R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0, "truncate": 0})", {"rope_scaling", "truncate"}, Code::bad_format},
      {R"("rope_scaling": {"rope_type": "yarn"})", {"factor", "missing"}, Code::bad_format},
      {R"("rope_parameters": {"full_attention": {"rope_theta": 1.0}})", {"rope_parameters"}},
      {R"("rope_scaling": {"rope_type": "linear"})", {"factor", "missing"}, Code::bad_format},
      {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0})", {"low_freq_factor"}, Code::bad_format},
      {R"("rope_theta": "10000")", {"rope_theta"}, Code::bad_format},
      {R"("rope_theta": 1e300)", {"rope_theta"}, Code::bad_format},
      {R"("rope_theta": -1)", {"rope_theta"}, Code::bad_format},
      {R"("hidden_act": "gelu")", {"hidden_act", "gelu"}},
      {R"("model_type": "gemma")", {"model_type", "gemma"}},
      {R"("embedding_multiplier": 12.0)", {"embedding_multiplier"}},
      {R"("attention_multiplier": 0.1)", {"attention_multiplier"}},
      {R"("quantization_config": {"bits": 4})", {"quantization_config"}},
      {R"("sliding_window": 16)", {"sliding_window"}},
      {R"("layer_types": ["full_attention", "sliding_attention"])", {"layer_types"}},
      {R"("partial_rotary_factor": 0.5)", {"partial_rotary_factor"}},
      {R"("hidden_size": 8.5)", {"hidden_size"}, Code::bad_format},
      {R"("hidden_size": 99999999999)", {"hidden_size"}, Code::bad_format},
      {R"("num_attention_heads": 0)", {"num_attention_heads"}, Code::bad_format},
      {R"("num_key_value_heads": 3)", {"num_key_value_heads"}, Code::bad_format},
      {R"("head_dim": 3)", {"head_dim"}, Code::bad_format},
      {R"("vocab_size": null)", {"vocab_size", "missing"}, Code::bad_format},
      {R"("rms_norm_eps": 0)", {"rms_norm_eps"}, Code::bad_format},
      {R"("rms_norm_eps": -1e-9)", {"rms_norm_eps: -1e-09 is not in (0, 1]"}, Code::bad_format},
      {R"("eos_token_id": 20)", {"eos_token_id"}, Code::bad_format},
      {R"("eos_token_id": ["x"])", {"eos_token_id"}, Code::bad_format},
      {R"("aerie_tap_layers": [2])", {"tap_layers"}, Code::bad_format},
      {R"("tie_word_embeddings": "yes")", {"tie_word_embeddings"}, Code::bad_format},
  };
  for (const auto& t : cases) {
    Checkpoint c;
    c.more = t.more;
    c.refused(t.code, t.words);
  }
  Checkpoint harmless;
  harmless.more = R"("sliding_window": 4096, "use_sliding_window": false, "model_type": "qwen2", "logit_scale": 1)";
  EXPECT_TRUE(harmless.run().ok());
}

TEST(ImportLlama, TapsAndEnds) {
  EXPECT_EQ(default_taps(32), (std::vector<int32_t>{2, 16, 29}));
  EXPECT_EQ(default_taps(16), (std::vector<int32_t>{2, 8, 13}));
  EXPECT_EQ(default_taps(5), (std::vector<int32_t>{2}));
  EXPECT_EQ(default_taps(1), (std::vector<int32_t>{0}));
  Checkpoint c;
  c.more = R"("aerie_tap_layers": [1, 0])";
  c.write();
  spit(c.options.source + "/generation_config.json", std::string(R"({"eos_token_id": [7, 2]})"));
  ASSERT_TRUE(convert(c.options).ok());
  EXPECT_EQ(c.open()->target()->tap_layers, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(c.open()->target()->eos_ids, (std::vector<int32_t>{7, 2}));
  fs::remove(c.options.output);
  spit(c.options.source + "/generation_config.json", std::string(R"({"eos_token_id": [2, 900]})"));
  c.expect_refused(convert(c.options), Code::bad_format, {"generation_config.json: eos_token_id: 900"});
}

// What transformers takes for granted.
TEST(ImportLlama, WhatTheConfigDoesNotSay) {
  const auto run = [](std::initializer_list<const char*> keys, const nlohmann::json& more, std::vector<int32_t>* ends) {
    Checkpoint c;
    c.write();
    auto j = nlohmann::json::parse(llama_json(c.config));
    for (const char* key : keys) j.erase(key);
    j.update(more);
    spit(c.options.source + "/config.json", j.dump());
    const Status s = convert(c.options);
    if (s.ok()) *ends = c.open()->target()->eos_ids;
    return s;
  };
  std::vector<int32_t> ends;
  EXPECT_TRUE(run({"eos_token_id"}, {{"model_type", "llama"}}, &ends).ok());
  EXPECT_EQ(ends, std::vector<int32_t>{2});
  EXPECT_TRUE(run({}, {{"model_type", "llama"}, {"eos_token_id", nullptr}}, &ends).ok());
  EXPECT_TRUE(ends.empty());
  // In the file's words.
  EXPECT_NE(run({}, {{"num_key_value_heads", 3}}, &ends).message().find("config.json: num_key_value_heads: 3"), std::string::npos);
  EXPECT_NE(run({"rope_scaling"}, {{"rope_scaling", {{"factor", 2.0}}}}, &ends).message().find("rope_scaling: a factor without"), std::string::npos);
}

TEST(ImportLlama, InputsAreNotOverwritten) {
  Checkpoint c;
  c.write();
  const auto refused = [&](const std::string& output, const char* words) {
    ConvertOptions o = c.options;
    o.output = output;
    const Status s = convert(o);
    EXPECT_EQ(s.code(), Code::invalid_argument) << output;
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
  };
  const std::string weights = c.options.source + "/model.safetensors";
  const Bytes before = slurp(weights);
  refused(weights, "is no package");
  EXPECT_EQ(slurp(weights), before);
  ASSERT_TRUE(convert(c.options).ok());
  ASSERT_TRUE(convert(c.options).ok());  // an earlier package may be replaced
#ifdef _WIN32  // links are for administrators; another way to the same file
  const std::string link = c.folder / "./out.aerie";
#else
  const std::string link = c.folder / "link.aerie";
  fs::create_symlink(c.options.output, link);
#endif
  ConvertOptions head = c.options;
  head.source = c.folder / "head";
  head.drafter_for = link;
  spit(head.source + "/config.json", eagle_json(c.config));
  spit(head.source + "/model.safetensors", safetensors(eagle_sources(c.config)));
  EXPECT_NE(convert(head).message().find("what it is made with"), std::string::npos);
  EXPECT_TRUE(c.open());
}

TEST(ImportLlama, TheTokenizerIsLeftOutWhereItIsNotWanted) {
  Checkpoint c;
  c.write();
  spit(c.options.source + "/tokenizer.json", std::string("{}"));
  EXPECT_FALSE(convert(c.options).ok());
  c.options.tokenizer = kNoTokenizer;
  ASSERT_TRUE(convert(c.options).ok());
  EXPECT_TRUE(c.open()->blob("tokenizer").empty());
  EXPECT_TRUE(c.warnings.empty());
}

// tokenizer.json if it is there, else SentencePiece's own file; both are the same model here.
TEST(ImportLlama, ATokenizerModelIsRead) {
  const std::string golden = std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/";
  Checkpoint c;
  c.config.vocab_size = c.config.vocab_used = 700;
  c.tensors = llama_sources(c.config);
  c.write();
  const auto ids = [&] {
    const Status s = convert(c.options);
    EXPECT_TRUE(s.ok()) << s.message();
    const auto p = c.open();
    const auto t = text::Tokenizer::deserialize(p->blob("tokenizer"));
    EXPECT_TRUE(t.ok()) << t.status().message();
    fs::remove(c.options.output);
    return std::pair(p->target()->vocab_used, *(*t)->encode("The <mask> dragon", {.add_bos = true, .parse_special = true}));
  };
  spit(c.options.source + "/tokenizer.model", slurp(golden + "spm/tokenizer.model"));
  const auto model = ids();
  EXPECT_EQ(model.first, 640);
  spit(c.options.source + "/tokenizer.json", slurp(golden + "spm_prepend/tokenizer.json"));
  const auto json = ids();  // knows "<mask>", too
  EXPECT_EQ(json.first, 643);
  EXPECT_LT(json.second.size(), model.second.size());
  c.options.tokenizer = golden + "spm/tokenizer.model";
  EXPECT_EQ(ids(), model);
}

// Gemma 3's has one for images, also beside the models that are for text alone.
TEST(ImportLlama, SpecialTokensThatTheModelHasNoRowForAreLeftOut) {
  auto tokenizer = nlohmann::json::parse(slurp(std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/gemma/tokenizer.json"));
  tokenizer["added_tokens"].push_back({{"id", 640}, {"content", "<image_soft_token>"}, {"special", true}});
  Checkpoint c;
  c.config.vocab_size = c.config.vocab_used = 640;
  c.tensors = llama_sources(c.config);
  c.write();
  spit(c.options.source + "/tokenizer.json", tokenizer.dump());
  const Status s = convert(c.options);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(c.open()->target()->vocab_used, 640);
  EXPECT_EQ((*text::Tokenizer::deserialize(c.open()->blob("tokenizer")))->vocab_size(), 640);
  ASSERT_EQ(c.warnings.size(), 1u);
  EXPECT_NE(c.warnings[0].find("<image_soft_token>"), std::string::npos) << c.warnings[0];
  fs::remove(c.options.output);
  tokenizer["added_tokens"].back()["special"] = false;
  spit(c.options.source + "/tokenizer.json", tokenizer.dump());
  c.expect_refused(convert(c.options), Code::mismatch, {"641 tokens", "640"});
}

// What a directory says of its tokenizer beside the one that is read, and that would be lost in silence.
TEST(ImportLlama, WhatTheTokenizersFileLacksIsSaid) {
  const std::string golden = std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/";
  Checkpoint c;
  c.config.vocab_size = c.config.vocab_used = 740;
  c.tensors = llama_sources(c.config);
  c.write();
  const auto file = [&](const char* name) { return c.options.source + "/" + name; };
  const auto told = [&](std::initializer_list<const char*> words) {
    c.warnings.clear();
    const Status s = convert(c.options);
    EXPECT_TRUE(s.ok()) << s.message();
    return std::count_if(c.warnings.begin(), c.warnings.end(), [&](const std::string& w) {
      return std::all_of(words.begin(), words.end(), [&](const char* word) { return w.find(word) != std::string::npos; });
    });
  };
  spit(file("tokenizer.model"), slurp(golden + "spm/tokenizer.model"));
  EXPECT_EQ(told({"added_tokens.json"}), 0);
  spit(file("added_tokens.json"), std::string(R"({"<mask>": 640})"));
  EXPECT_EQ(told({"added_tokens.json", "tokenizer.model", "left out", "save_pretrained"}), 1);
  spit(file("generation_config.json"), std::string(R"({"eos_token_id": [2, 650]})"));
  fs::remove(c.options.output);
  c.expect_refused(convert(c.options), Code::mismatch, {"eos_token_id: 650", "only 640 tokens", "save_pretrained"});
  fs::remove(file("generation_config.json"));
  spit(file("tokenizer.json"), slurp(golden + "qwen2/tokenizer.json"));
  EXPECT_EQ(told({"added_tokens.json"}), 0) << "tokenizer.json has them";
  const auto config = [&](const char* text) { spit(file("tokenizer_config.json"), std::string(text)); };
  config(R"({"add_bos_token": true, "bos_token": "<s>"})");
  EXPECT_EQ(told({"tokenizer_config.json", "add_bos_token", "tokenizer.json", "without"}), 1);
  config(R"({"chat_template": 5})");
  EXPECT_EQ(told({"tokenizer_config.json", "chat_template", "left out"}), 1);
  config(R"({"add_bos_token": true, "bos_token": null})");
  EXPECT_EQ(told({"add_bos_token"}), 0);
  config(R"({"add_bos_token": false, "bos_token": "<s>"})");
  EXPECT_EQ(told({"add_bos_token"}), 0);
  config(R"({"add_bos_token": true, "bos_token": "<|endoftext|>"})");
  spit(file("tokenizer.json"), slurp(golden + "llama3/tokenizer.json"));
  EXPECT_EQ(told({"add_bos_token"}), 0) << "this one puts it";
}

TEST(ImportLlama, Shards) {
  Checkpoint c;
  const Sources all = c.tensors;
  c.write();
  fs::remove(c.options.source + "/model.safetensors");
  Sources parts[2];
  nlohmann::json map;
  int i = 0;
  for (const auto& [name, t] : all) {
    const int part = i++ % 2;
    parts[part][name] = t;
    map[name] = "model-" + std::to_string(part) + ".safetensors";
  }
  const auto index = [&](const nlohmann::json& m) {
    spit(c.options.source + "/model.safetensors.index.json", nlohmann::json{{"weight_map", m}}.dump());
  };
  for (int p = 0; p < 2; ++p)
    spit(c.options.source + "/model-" + std::to_string(p) + ".safetensors", safetensors(parts[p]));
  index(map);
  const Status s = convert(c.options);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(at(*c.open(), "embed", 3, 3), all.at("model.embed_tokens.weight").values[27]);
  auto bad = map;
  bad["model.norm.weight"] = "../elsewhere.safetensors";
  index(bad);
  EXPECT_EQ(convert(c.options).code(), Code::bad_format);
  bad = map;
  bad["ghost.weight"] = "model-0.safetensors";
  index(bad);
  EXPECT_NE(convert(c.options).message().find("ghost.weight"), std::string::npos);
  bad["ghost.weight"] = "model-9.safetensors";
  index(bad);
  EXPECT_EQ(convert(c.options).code(), Code::not_found);
  parts[1]["model.norm.weight"] = all.at("model.norm.weight");
  parts[0]["model.norm.weight"] = all.at("model.norm.weight");
  for (int p = 0; p < 2; ++p)
    spit(c.options.source + "/model-" + std::to_string(p) + ".safetensors", safetensors(parts[p]));
  index(map);
  EXPECT_NE(convert(c.options).message().find("in two files"), std::string::npos);
}

TEST(ImportLlama, CancelLeavesNothing) {
  Checkpoint c;
  int calls = 0;
  c.options.progress = [&](uint64_t done, uint64_t total) {
    EXPECT_LE(done, total);
    return ++calls < 5;
  };
  c.refused(Code::cancelled, {"cancelled"});
  EXPECT_EQ(calls, 5);
}

TEST(ImportLlama, InPlace) {
  Checkpoint c;
  ASSERT_TRUE(c.run().ok());
  ConvertOptions o;
  o.source = o.output = c.options.output;
  o.dtype = DType::int8;
  ASSERT_TRUE(convert(o).ok());
  EXPECT_EQ(c.open()->tensor("embed")->dtype, DType::int8);
  std::vector<std::string> warnings;
  o.dtype = DType::bf16;
  o.warnings = &warnings;
  ASSERT_TRUE(convert(o).ok());
  EXPECT_EQ(warnings.size(), 1u);  // int8 already lost something
}

// ---- safetensors, byte by byte ----

TEST(ImportSafetensors, HostileHeaders) {
  const Bytes data(32, 0);
  const auto file = [&](const std::string& header, uint64_t length = 0) {
    const uint64_t n = length ? length : header.size();
    Bytes f;
    f.reserve(sizeof n + header.size() + data.size());
    f.resize(sizeof n);
    std::memcpy(f.data(), &n, sizeof n);
    f.insert(f.end(), header.begin(), header.end());
    f.insert(f.end(), data.begin(), data.end());
    return f;
  };
  const char* headers[] = {
      "",
      "[]",
      "{",
      R"({"a": 1})",
      R"({"a": {"dtype": "F32", "shape": [8]}})",
      R"({"a": {"dtype": "F99", "shape": [8], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 36]}})",
      R"({"a": {"dtype": "F32", "shape": [8], "data_offsets": [32, 0]}})",
      R"({"a": {"dtype": "F32", "shape": [-8], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [8.0], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": ["8"], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})",
      R"({"a": {"dtype": "F32", "shape": [7], "data_offsets": [4, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [7], "data_offsets": [0, 28]}})",
      R"({"a": {"dtype": "F32", "shape": [4294967296, 4294967296, 4294967296], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [18446744073709551615], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 18446744073709551615]}})",
      R"({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}, "b": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}, "b": {"dtype": "F32", "shape": [5], "data_offsets": [12, 32]}})",
      R"({"a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}, "a": {"dtype": "F32", "shape": [8], "data_offsets": [0, 32]}})",
  };
  for (const char* h : headers) {
    Checkpoint c;
    c.write();
    spit(c.options.source + "/model.safetensors", file(h));
    const Status s = convert(c.options);
    EXPECT_TRUE(s.code() == Code::bad_format || s.code() == Code::unsupported) << h << s.message();
    EXPECT_NE(s.message().find("model.safetensors"), std::string::npos) << s.message();
    EXPECT_EQ(c.folder.names(), std::vector<std::string>{"model"});
  }
  for (const uint64_t n : {uint64_t{1} << 63, (uint64_t{100} << 20) + 1, ~uint64_t{0}, uint64_t{1000}}) {
    Checkpoint c;
    c.write();
    spit(c.options.source + "/model.safetensors", file("{}", n));
    EXPECT_EQ(convert(c.options).code(), Code::bad_format) << n;
  }
  Checkpoint deep;
  deep.write();
  spit(deep.options.source + "/model.safetensors", file(std::string(200000, '[')));
  EXPECT_EQ(convert(deep.options).code(), Code::bad_format);
  spit(deep.options.source + "/model.safetensors",
       file(R"({"a":)" + std::string(200000, '[') + std::string(200000, ']') + "}"));
  EXPECT_EQ(convert(deep.options).code(), Code::bad_format);
}

TEST(ImportSafetensors, TruncatedAnywhere) {
  Checkpoint c;
  c.write();
  const Bytes file = safetensors(c.tensors);
  const size_t step = file.size() / 150 + 1;
  for (size_t n = 0; n < file.size(); n += n < 64 ? 1 : step) {
    spit(c.options.source + "/model.safetensors", Bytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(n)));
    ASSERT_EQ(convert(c.options).code(), Code::bad_format) << n;
  }
  EXPECT_EQ(c.folder.names(), std::vector<std::string>{"model"});
}

// ---- other sources by content ----

TEST(ImportRecognise, ByContent) {
  const Folder folder;
  const auto status = [&](const std::string& name, const std::string& bytes) {
    spit(folder / name, bytes);
    ConvertOptions o;
    o.source = folder / name;
    o.output = folder / "out.aerie";
    const Status s = convert(o);
    EXPECT_FALSE(fs::exists(o.output));
    return s;
  };
  EXPECT_NE(status("a.aerie", std::string("GGUF\3\0\0\0", 8)).message().find("GGUF header"), std::string::npos);
  EXPECT_NE(status("b.safetensors", std::string("PK\3\4....", 8)).message().find("weights_only"), std::string::npos);
  EXPECT_NE(status("c.bin", std::string("\x80\x02}q\0", 5)).message().find("pickle"), std::string::npos);
  EXPECT_EQ(status("d.bin", std::string("24ka\1\0\0\0", 8)).code(), Code::unsupported);
  EXPECT_EQ(status("e.bin", "").code(), Code::bad_format);
  EXPECT_EQ(status("f.bin", std::string(4096, 'x')).code(), Code::bad_format);
  EXPECT_EQ(status("g.bin", "AERIE but not one").code(), Code::bad_format);
  EXPECT_EQ(status("pt/pytorch_model.bin", "PK\3\4").code(), Code::unsupported);
  ConvertOptions o;
  o.output = folder / "out.aerie";
  o.source = folder / "pt";
  EXPECT_NE(convert(o).message().find("weights_only"), std::string::npos) << convert(o).message();
  o.source = folder / "absent";
  EXPECT_EQ(convert(o).code(), Code::not_found);
  fs::create_directory(folder / "void");
  o.source = folder / "void";
  EXPECT_EQ(convert(o).code(), Code::not_found);
  Sources other;
  other["medusa_head.0.weight"] = source("m", {2, 2});
  spit(folder / "med/model.safetensors", safetensors(other));
  o.source = folder / "med";
  EXPECT_NE(convert(o).message().find("Medusa"), std::string::npos);
  for (const DType dtype : {DType::i32, static_cast<DType>(8), static_cast<DType>(255)}) {
    o.dtype = dtype;
    EXPECT_EQ(convert(o).code(), Code::invalid_argument);
    EXPECT_EQ(convert(o).message(), "convert: dtype must be f32, bf16, fp8, int8, int4, q4_1 or mxfp4, or as stored");
  }
}

TEST(Inspect, SaysWhatIsInside) {
  Checkpoint c;
  c.options.dtype = DType::int4;
  c.options.compress = true;
  ASSERT_TRUE(c.run().ok());
  const auto text = inspect(c.options.output, true);
  ASSERT_TRUE(text.ok());
  const auto j = nlohmann::json::parse(*text);
  EXPECT_EQ(j["kind"], "target");
  EXPECT_EQ(j["config"]["kv_heads"], 1);
  EXPECT_EQ(j["config"]["rms_eps"], 1e-5);
  EXPECT_EQ(j["fingerprint"], c.open()->fingerprint());
  EXPECT_EQ(j["tensors"].size(), package::expected_tensors(c.config).size());
  EXPECT_EQ(j["tensors"][0]["dtype"], "int4");
  EXPECT_EQ(j["file_bytes"], fs::file_size(c.options.output));
  const auto human = inspect(c.options.output, false);
  ASSERT_TRUE(human.ok());
  uint64_t down = 0;
  for (const auto& t : j["tensors"])
    if (t["name"].get<std::string>().ends_with(".mlp.down")) down += t["stored_bytes"].get<uint64_t>();
  const size_t at = human->find("  layers.0-1.mlp.down ");  // layers alike are one line
  ASSERT_NE(at, std::string::npos) << *human;
  const std::string line = human->substr(at, human->find('\n', at) - at);
  EXPECT_EQ(line.substr(line.rfind(' ') + 1), std::to_string(down));
  EXPECT_EQ(human->find("layers.1"), std::string::npos);
  EXPECT_EQ(inspect(c.folder / "absent", true).status().code(), Code::not_found);
  spit(c.folder / "junk", std::string(5000, 'j'));
  EXPECT_NE(inspect(c.folder / "junk", false).status().message().find("junk: magic"), std::string::npos);
}

}  // namespace
}  // namespace aerie::test
