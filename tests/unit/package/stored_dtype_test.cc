// --dtype stored: every matrix in the dtype nearest to what its source has it in.
#include "core/import/gguf_blocks.h"
#include "core/import/source.h"
#include "unit/package/conversion_fixture.h"
#include "unit/package/gguf_fixtures.h"

namespace aerie::test {
namespace {

using kernels::DType;

using DTypes = std::map<std::string, DType>;

DTypes matrices_of(const std::string& file) {
  const auto p = Package::open(file);
  EXPECT_TRUE(p.ok()) << p.status().message();
  DTypes all;
  if (p.ok())
    for (const TensorInfo& t : (*p)->tensors())
      if (t.rows > 1) all[t.name] = t.dtype;
  return all;
}

// A GGUF of two layers whose tensors are of many types.
struct MixedGguf : ConversionFixture {
  Gguf file;
  MixedGguf() : ConversionFixture("model.gguf") {
    config.hidden = config.ffn = 256;
    config.heads = 8;
    config.kv_heads = 4;
    config.head_dim = 32;
    tensors = llama_sources(config);
    file = gguf_of(tensors, config);
    static const std::pair<const char*, const char*> kTypes[] = {
        {"token_embd", "F16"},        {"output", "Q8_0"},         {"blk.0.attn_q", "Q4_K"},      {"blk.0.attn_k", "Q4_K"},
        {"blk.0.attn_v", "Q6_K"},     {"blk.0.attn_output", "Q4_K"}, {"blk.0.ffn_gate", "Q4_0"}, {"blk.0.ffn_up", "Q4_1"},
        {"blk.0.ffn_down", "Q4_0"},   {"blk.1.attn_q", "Q4_0"},   {"blk.1.attn_k", "Q4_0"},      {"blk.1.attn_v", "Q4_0"},
        {"blk.1.attn_output", "Q5_1"}, {"blk.1.ffn_gate", "Q5_K"}, {"blk.1.ffn_up", "BF16"},     {"blk.1.ffn_down", "F32"}};
    for (const auto& [name, type] : kTypes) set(name, type);
    spit(options.source, file.bytes());
    options.dtype = WeightDType::stored();
  }
  void set(const std::string& name, std::string_view type_name) {
    const GgufType* type = nullptr;
    for (uint32_t id = 0; id < 64 && !(type && type->name == type_name); ++id) type = gguf_type(id);
    const std::vector<int64_t> shape = file.shape(name + ".weight");
    // Whatever the type, these bytes are finite numbers.
    file.tensor(name + ".weight", shape, type->id,
                std::string(static_cast<size_t>(shape[0] * shape[1] / type->elements * type->bytes), '\x21'));
  }
};

const DTypes kMixed = {{"embed", DType::bf16},
                       {"lm_head", DType::int8},
                       {"layers.0.attn.qkv", DType::int8},
                       {"layers.0.attn.o", DType::q4_1},
                       {"layers.0.mlp.gate_up", DType::q4_1},
                       {"layers.0.mlp.down", DType::int4},
                       {"layers.1.attn.qkv", DType::int4},
                       {"layers.1.attn.o", DType::int8},
                       {"layers.1.mlp.gate_up", DType::bf16},
                       {"layers.1.mlp.down", DType::f32}};

TEST(StoredDType, OfAGgufFileIsEachMatrixsOwn) {
  MixedGguf c;
  const Status s = convert(c.options);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_EQ(matrices_of(c.options.output), kMixed);
  const std::string fingerprint = c.open()->fingerprint();

  c.options.head_dtype = DType::q4_1;
  ASSERT_TRUE(convert(c.options).ok());
  DTypes want = kMixed;
  want["embed"] = want["lm_head"] = DType::q4_1;
  EXPECT_EQ(matrices_of(c.options.output), want);
  EXPECT_EQ(c.open()->fingerprint(), fingerprint);

  c.options.dtype = DType::int4;
  c.options.head_dtype = WeightDType::stored();
  ASSERT_TRUE(convert(c.options).ok());
  for (auto& [name, dtype] : want) dtype = name == "embed" || name == "lm_head" ? kMixed.at(name) : DType::int4;
  EXPECT_EQ(matrices_of(c.options.output), want);
  EXPECT_EQ(c.open()->fingerprint(), fingerprint);
}

TEST(StoredDType, OfF32IsBf16WhereNoDtypeIsAskedFor) {
  MixedGguf c;
  c.options.dtype = WeightDType();
  ASSERT_TRUE(convert(c.options).ok());
  DTypes want = kMixed;
  want["layers.1.mlp.down"] = DType::bf16;
  EXPECT_EQ(matrices_of(c.options.output), want);
}

TEST(StoredDType, OfACandidateHeadIsTheLmHeads) {
  MixedGguf c;
  c.options.candidate_rank = 16;
  for (const auto& [type, want] : {std::pair{"F16", DType::bf16}, {"Q8_0", DType::int8}, {"Q4_K", DType::int8}, {"F32", DType::f32}}) {
    c.set("output", type);
    spit(c.options.source, c.file.bytes());
    ASSERT_TRUE(convert(c.options).ok());
    const DTypes got = matrices_of(c.options.output);
    EXPECT_EQ(got.at("candidate.down"), want) << type;
    EXPECT_EQ(got.at("candidate.up"), want) << type;
  }
  c.options.head_dtype = DType::bf16;
  ASSERT_TRUE(convert(c.options).ok());
  EXPECT_EQ(matrices_of(c.options.output).at("candidate.up"), DType::bf16);
}

TEST(StoredDType, OfSafetensorsIsTheirPrecision) {
  for (const auto& [format, want] : {std::pair{"F32", DType::f32}, {"F16", DType::bf16}, {"BF16", DType::bf16}}) {
    ConversionFixture c("model");
    c.tensors = llama_sources(c.config, format);
    c.tensors.at("model.layers.1.self_attn.k_proj.weight").dtype = "F32";
    c.options.dtype = WeightDType::stored();
    spit(c.options.source + "/config.json", llama_json(c.config));
    spit(c.options.source + "/model.safetensors", safetensors(c.tensors));
    const Status s = convert(c.options);
    ASSERT_TRUE(s.ok()) << s.message();
    for (const auto& [name, dtype] : matrices_of(c.options.output))
      EXPECT_EQ(dtype, name == "layers.1.attn.qkv" ? DType::f32 : want) << name << " of " << format;
  }
}

TEST(StoredDType, OfAModelUnderAnotherNameIsTheSame) {
  ConversionFixture c("model");
  c.tensors.clear();
  for (const auto& [name, tensor] : llama_sources(c.config, "BF16")) c.tensors["language_model." + name] = tensor;
  c.options.dtype = WeightDType::stored();
  spit(c.options.source + "/config.json", llama_json(c.config));
  spit(c.options.source + "/model.safetensors", safetensors(c.tensors));
  const Status s = convert(c.options);
  ASSERT_TRUE(s.ok()) << s.message();
  for (const auto& [name, dtype] : matrices_of(c.options.output)) EXPECT_EQ(dtype, DType::bf16) << name;
}

TEST(StoredDType, OfADraftersHeadIsItsOwn) {
  const Folder folder;
  ASSERT_TRUE(write_target(folder / "t.aerie", small_config(), DType::int4).ok());
  LlamaConfig config = small_config();
  config.layers = 1;
  Sources tensors = eagle_sources(config);
  for (auto& [name, tensor] : tensors) tensor.dtype = "BF16";
  tensors.at("fc.weight").dtype = "F32";
  spit(folder / "head/config.json", eagle_json(config));
  spit(folder / "head/model.safetensors", safetensors(tensors));
  ConvertOptions o;
  o.source = folder / "head";
  o.output = folder / "d.aerie";
  o.drafter_for = folder / "t.aerie";
  o.dtype = WeightDType::stored();
  const Status s = convert(o);
  ASSERT_TRUE(s.ok()) << s.message();
  for (const auto& [name, dtype] : matrices_of(o.output)) EXPECT_EQ(dtype, name == "fc" ? DType::f32 : DType::bf16) << name;
}

TEST(StoredDType, OfAPackageLeavesEveryByte) {
  MixedGguf c;
  c.options.candidate_rank = 16;
  ASSERT_TRUE(convert(c.options).ok());
  std::vector<std::string> notes;
  ConvertOptions again;
  again.source = c.options.output;
  again.output = c.folder / "again.aerie";
  again.dtype = WeightDType::stored();
  again.compress = true;
  again.warnings = &notes;
  const Status s = convert(again);
  ASSERT_TRUE(s.ok()) << s.message();
  EXPECT_TRUE(notes.empty());  // nothing was rounded again
  const auto before = c.open();
  const auto after = *Package::open(again.output);
  ASSERT_EQ(before->tensors().size(), after->tensors().size());
  for (const TensorInfo& info : before->tensors()) {
    const auto a = before->tensor(info.name), b = after->tensor(info.name);
    ASSERT_TRUE(a.ok() && b.ok()) << info.name;
    ASSERT_EQ(a->dtype, b->dtype) << info.name;
    const auto bytes = static_cast<size_t>(kernels::data_bytes(a->dtype, a->layout, a->rows, a->cols));
    EXPECT_EQ(std::memcmp(a->data, b->data, bytes), 0) << info.name;
    const auto scales = static_cast<size_t>(kernels::scale_bytes(a->dtype, a->rows, a->cols));
    EXPECT_TRUE(scales == 0 || std::memcmp(a->scales, b->scales, scales) == 0) << info.name;
  }
}

// Any other dtype of a few bits would round it again, and be no smaller.
TEST(StoredDType, OfMxfp4IsKeptOrHeldExactly) {
  const Folder folder;
  ASSERT_TRUE(write_target(folder / "mx.aerie", small_config(), DType::mxfp4).ok());
  const auto source = *Package::open(folder / "mx.aerie");
  ConvertOptions o;
  o.source = folder / "mx.aerie";
  o.output = folder / "out.aerie";
  std::vector<std::string> notes;
  o.warnings = &notes;
  const auto converted_to = [&](WeightDType dtype) {
    o.dtype = dtype;
    const Status s = convert(o);
    EXPECT_TRUE(s.ok()) << s.message();
    return *Package::open(o.output);
  };
  for (const WeightDType& dtype : {WeightDType(), WeightDType::stored(), WeightDType(DType::int8), WeightDType(DType::int4),
                                   WeightDType(DType::q4_1), WeightDType(DType::fp8), WeightDType(DType::mxfp4)})
    EXPECT_EQ(converted_to(dtype)->tensor("layers.0.mlp.down")->dtype, DType::mxfp4);
  for (const DType exact : {DType::f32, DType::bf16}) {
    const auto out = converted_to(exact);
    const kernels::Tensor a = *source->tensor("layers.0.mlp.down"), b = *out->tensor("layers.0.mlp.down");
    EXPECT_EQ(b.dtype, exact);
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t c = 0; c < a.cols; ++c) ASSERT_EQ(kernels::panel16_at(a, r, c), kernels::panel16_at(b, r, c)) << r << " " << c;
  }
  EXPECT_TRUE(notes.empty()) << notes[0];  // nothing was lost
}

TEST(StoredDType, OfWhatBecomesOneMatrixIsTheFinest) {
  const DType order[] = {DType::f32, DType::bf16, DType::int8, DType::q4_1, DType::int4, DType::mxfp4};
  for (size_t a = 0; a < std::size(order); ++a)
    for (size_t b = 0; b < std::size(order); ++b) EXPECT_EQ(finer(order[a], order[b]), order[std::min(a, b)]) << a << " " << b;
}

}  // namespace
}  // namespace aerie::test
