// aerie/tools.h when the heap runs out in it: at any allocation, for one of them or for all that follow. It says so, leaves
// no file behind, and the next try gives the package that there would have been.

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "aerie/tools.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"
#include "tests/unit/package/gguf_builder.h"

namespace aerie_capi_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void write(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}
template <class T>
std::string raw(const T& value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
std::string weights(size_t n) {
  std::string bytes;
  for (size_t i = 0; i < n; ++i) bytes += raw(static_cast<float>(i * 37 % 101) / 64 - 0.7f);
  return bytes;
}

// Checkpoints of one small model: a folder in two shards with a tokenizer and a chat template, a llama2.c file, and GGUF files with
// a tokenizer of each kind.
struct Checkpoints {
  const TemporaryFolder own;
  const fs::path folder = own.path();
  static constexpr int kVocab = 1024, kHidden = 8, kFfn = 12;

  Checkpoints() {
    fs::create_directories(folder / "out");
    hugging_face();
    llama2c();
    gguf();
  }
  std::string at(const char* name) const { return (folder / name).string(); }

 private:
  static std::string shard(const std::vector<std::pair<std::string, std::vector<size_t>>>& tensors) {
    std::string header, data;
    for (const auto& [name, shape] : tensors) {
      const size_t n = shape.size() > 1 ? shape[0] * shape[1] : shape[0];
      const std::string dims = std::to_string(shape[0]) + (shape.size() > 1 ? "," + std::to_string(shape[1]) : "");
      header += (header.empty() ? "{\"" : ",\"") + name + R"(":{"dtype":"F32","shape":[)" + dims + R"(],"data_offsets":[)" +
                std::to_string(data.size()) + "," + std::to_string(data.size() + 4 * n) + "]}";
      data += weights(n);
    }
    header += "}";
    return raw(uint64_t{header.size()}) + header + data;
  }
  void hugging_face() {
    const fs::path to = folder / "hf";
    write(to / "config.json", R"({"model_type":"llama","hidden_size":8,"intermediate_size":12,"num_attention_heads":2,
        "num_key_value_heads":1,"num_hidden_layers":1,"vocab_size":1024,"max_position_embeddings":32,
        "rope_parameters":{"rope_theta":10000.0,"rope_type":"default"},"eos_token_id":[2,3]})");
    write(to / "generation_config.json", R"({"eos_token_id":[2]})");
    write(to / "tokenizer_config.json", R"({"chat_template":[{"name":"default","template":"{{ a template that is not short }}"}]})");
    write(to / "tokenizer.json", contents(AERIE_SOURCE_DIR "/tests/golden/text/llama3/tokenizer.json"));
    const std::string l = "model.layers.0.";
    write(to / "a.safetensors", shard({{"model.embed_tokens.weight", {kVocab, kHidden}}, {"lm_head.weight", {kVocab, kHidden}}}));
    write(to / "b.safetensors",
          shard({{l + "input_layernorm.weight", {kHidden}}, {l + "self_attn.q_proj.weight", {8, kHidden}},
                 {l + "self_attn.k_proj.weight", {4, kHidden}}, {l + "self_attn.v_proj.weight", {4, kHidden}},
                 {l + "self_attn.o_proj.weight", {kHidden, 8}}, {l + "post_attention_layernorm.weight", {kHidden}},
                 {l + "mlp.gate_proj.weight", {kFfn, kHidden}}, {l + "mlp.up_proj.weight", {kFfn, kHidden}},
                 {l + "mlp.down_proj.weight", {kHidden, kFfn}}, {"model.norm.weight", {kHidden}}}));
    write(to / "model.safetensors.index.json",
          R"({"weight_map":{"model.embed_tokens.weight":"a.safetensors","model.norm.weight":"b.safetensors"}})");
  }
  void llama2c() {
    constexpr int32_t kPieces = 300, kContext = 16;
    std::string file, pieces = raw(int32_t{8});
    for (const int32_t v : {kHidden, kFfn, 1, 2, 1, kPieces, kContext}) file += raw(v);
    const size_t h = kHidden, f = kFfn, kv = 4;
    write(folder / "stories.bin", file + weights(kPieces * h + h + h * h + 2 * kv * h + h * h + h + 3 * f * h + h + kContext * 4));
    for (int32_t i = 0; i < kPieces; ++i) {
      char byte[8];
      std::snprintf(byte, sizeof byte, "<0x%02X>", (i - 3) & 255);
      const std::string piece = i < 3 ? "<s>" : i < 259 ? byte : "a piece of text " + std::to_string(i);
      pieces += raw(static_cast<float>(-i)) + raw(static_cast<int32_t>(piece.size())) + piece;
    }
    write(folder / "tokenizer.bin", pieces);
  }
  void gguf() {
    write(folder / "pieces.gguf", aerie::test::small_gguf(true).bytes());
    write(folder / "letters.gguf", aerie::test::small_gguf(false).bytes());
  }
};

struct Conversion {
  const char* name;
  const char* source;  // of Checkpoints; with a slash in front: of tests/golden
  const char* drafter_for = nullptr;
  const char* tokenizer = nullptr;
  int32_t dtype = AERIE_WEIGHTS_BF16, compress = 0, candidate_rank = 0;

  int32_t run(const Checkpoints& c, const std::string& output, aerie_error* err) const {
    const std::string from = source[0] == '/' ? std::string(AERIE_SOURCE_DIR "/tests/golden") + source : c.at(source);
    const std::string target = drafter_for ? c.at(drafter_for) : "", text = tokenizer ? c.at(tokenizer) : "";
    aerie_convert_options o;
    AERIE_INIT(o);
    o.source = from.c_str();
    o.output = output.c_str();
    o.drafter_for = drafter_for ? target.c_str() : nullptr;
    o.tokenizer = tokenizer ? text.c_str() : nullptr;
    o.dtype = dtype;
    o.compress = compress;
    o.candidate_rank = candidate_rank;
    if (at >= 0) Shortage::begin(at, length);
    const int32_t code = aerie_convert(&o, err);
    if (at >= 0) failed = Shortage::end();
    return code;
  }
  mutable int64_t at = -1, length = 0;  // of the shortage
  mutable bool failed = false;
};

const Conversion kConversions[] = {
    {"Directory", "hf", nullptr, nullptr, AERIE_WEIGHTS_INT8},
    {"DirectoryWithACandidateHead", "hf", nullptr, nullptr, AERIE_WEIGHTS_INT4, 1, 4},
    {"Llama2c", "stories.bin", nullptr, "tokenizer.bin", AERIE_WEIGHTS_FP8, 1},
    {"GgufOfPieces", "pieces.gguf", nullptr, nullptr, AERIE_WEIGHTS_INT4},
    {"GgufOfBytes", "letters.gguf", nullptr, nullptr, AERIE_WEIGHTS_STORED},
    {"Package", "target.aerie", nullptr, nullptr, AERIE_WEIGHTS_INT8, 1, 8},
    {"Eagle", "/heads/eagle", "target.aerie"},
    {"Eagle3", "/heads/eagle3", "target.aerie"},
    {"FastEagle", "/heads/fasteagle", "target.aerie"},
    {"DFlash", "/heads/dflash", "target.aerie"},
    {"Medusa", "/heads/medusa", "target.aerie"},
    {"Hydra", "/heads/hydra", "target.aerie"},
};

class OutOfMemoryInConvert : public testing::TestWithParam<Conversion> {};

TEST_P(OutOfMemoryInConvert, SaysSoAndLeavesNothing) {
  const Checkpoints c;
  aerie_error err;
  AERIE_INIT(err);
  const Conversion target{"", "/logits/mha", nullptr, nullptr, AERIE_WEIGHTS_F32};
  ASSERT_EQ(target.run(c, c.at("target.aerie"), &err), AERIE_OK) << err.message;
  const std::string out = c.at("out/package.aerie");
  Conversion conversion = GetParam();
  ASSERT_EQ(conversion.run(c, out, &err), AERIE_OK) << err.message;
  const std::string whole = contents(out);
  int32_t failures = 0;
  for (const int64_t length : {int64_t{1}, int64_t{3}, Shortage::kForEver}) {
    bool failed = true;
    for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / 16) {
      SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
      fs::remove(out);
      conversion.at = at;
      conversion.length = length;
      const int32_t code = conversion.run(c, out, &err);
      failed = conversion.failed;
      if (code == AERIE_OK) {  // what failed could be done without
        EXPECT_EQ(contents(out), whole);
        continue;
      }
      ++failures;
      EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << err.message;
      EXPECT_EQ(err.code, code);
      EXPECT_TRUE(fs::is_empty(c.folder / "out"));
      conversion.at = -1;
      EXPECT_EQ(conversion.run(c, out, &err), AERIE_OK) << err.message;
      EXPECT_EQ(contents(out), whole);
    }
  }
  EXPECT_GT(failures, 100);
}
INSTANTIATE_TEST_SUITE_P(Sources, OutOfMemoryInConvert, testing::ValuesIn(kConversions),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(OutOfMemory, InspectSaysSo) {
  for (const int32_t format : {AERIE_INSPECT_TEXT, AERIE_INSPECT_JSON}) {
    aerie_error err;
    AERIE_INIT(err);
    std::string whole;
    int32_t failures = 0;
    for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{3}, Shortage::kForEver}) {
      bool failed = true;
      for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / 16) {
        SCOPED_TRACE("allocation " + std::to_string(at) + " and " + std::to_string(length - 1) + " more");
        char* text = nullptr;
        Shortage::begin(at, length);
        const int32_t code = aerie_inspect(demo_head(), format, &text, &err);
        failed = Shortage::end() && length > 0;
        if (code != AERIE_OK) {
          ++failures;
          EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << err.message;
          EXPECT_EQ(text, nullptr);
          continue;
        }
        if (whole.empty()) whole = text;
        EXPECT_EQ(text, whole);
        aerie_string_free(text);
      }
    }
    EXPECT_GT(failures, 20);
  }
}

}  // namespace
}  // namespace aerie_capi_test
