// Families that depart from Llama's architecture: windows, other norms, other turns. The promise is the same.
#include "tests/support/forward.h"
#include "tests/support/remade.h"

namespace aerie::test {
namespace {

using kernels::DType;

constexpr const char* kFamilyNames[] = {"mistral_window", "gemma3",    "phi3",    "granite",   "smollm3",  "olmo2",        "olmo3",     "exaone4", "mixtral",
                                        "qwen3_moe",      "olmoe",     "granitemoe", "gpt_oss", "qwen2_moe", "glm4_moe", "ernie4_5_moe", "minimax_m2",
                                        "dots1",          "granitemoeshared", "qwen3_5", "qwen3_5_moe", "qwen3_next", "lfm2", "lfm2_moe", "gemma4",
                                        "gemma4_keys", "gemma4_moe", "gemma2"};

class Families : public testing::TestWithParam<const char*> {};

std::vector<int32_t> tokens_of_family(int32_t n) { return random_tokens(n, 70, 5); }

// Texts several times as long as their windows, which trees reach across.
TEST_P(Families, DraftsChangeNoToken) {
  const std::string path = converted(golden(GetParam()), "family", DType::int8);
  // Layers that are recurrent draft for nobody; any model of as many tokens may.
  const bool recurrent = must(Package::open(path))->target()->departures.recurrent();
  const std::string small = converted(golden(recurrent ? "qwen3_moe" : GetParam()), "family-small", DType::q4_1);
  const auto prompt = tokens_of_family(30);
  for (const float temperature : {0.0f, 0.9f}) {
    auto plain = must(Session::create(open_model(path, cpu(1)), options_for({}, "chain", temperature)));
    must(plain->append(prompt));
    const auto want = generate(*plain, 60);
    const auto model = open_model(path, cpu(2));
    const auto guesses = open_drafter(model, "small_model", small), repeats = open_drafter(model, "ngram", "");
    for (const auto& [drafter, tree] : {std::pair{guesses, "chain"}, {guesses, "eagle2"}, {repeats, "static"}}) {
      auto session = must(Session::create(model, options_for(drafter, tree, temperature)));
      must(session->append(prompt));
      EXPECT_EQ(generate(*session, 60), want) << tree << ", temperature " << temperature;
      must(session->rewind(40));  // to where windows see what is behind them by now
      EXPECT_EQ(generate(*session, 50), std::vector<int32_t>(want.begin() + 10, want.end())) << tree << ", again";
    }
  }
}

TEST_P(Families, BitsOfALongTextDoNotDependOnChunks) {
  const std::string path = converted(with_long_context(GetParam(), 4096), "family-long", DType::bf16);
  const auto ids = tokens_of_family(kernels::kSpanSlots + 300);
  ModelOptions m;
  m.kv_positions = 2048;
  m.kv_dtype = DType::bf16;
  const Forward one(*open_model(path, cpu(1), m), ids, 100, {}), other(*open_model(path, cpu(2), m), ids, 511, {});
  EXPECT_TRUE(one.logits == other.logits);
}

INSTANTIATE_TEST_SUITE_P(All, Families, testing::ValuesIn(kFamilyNames), [](const auto& info) { return std::string(info.param); });

// Gemma 4's mixture with inputs of each layer's own, which no published model has: inputs whose norm is 0 add nothing, and what a layer gives is
// scaled once, after them.
TEST(FamilyInputs, ThatAddNothingChangeNothing) {
  const auto ids = tokens_of_family(40);
  const auto logits = [&](int32_t inputs, float norm) {
    const auto values = [&](const std::string& name, std::vector<float>* v) {  // the same whatever else there is
      std::mt19937 random(static_cast<uint32_t>(name.size() * 131 + static_cast<unsigned char>(name.back())));
      for (float& x : *v) x = std::uniform_real_distribution<float>(0.1f, 0.5f)(random) * (name.ends_with("inputs.post_norm") ? norm : 1);
    };
    const std::string path = remade(golden("mha"), "0000000000000019", DType::f32, [&](LlamaConfig* c) {
      Departures& d = c->departures;
      d.norms = Departures::Norms::both;
      d.layer_scales = d.norm_experts = d.normed_experts = true;
      d.experts = 4, d.experts_used = 2, d.shared_ffn = 24, d.layer_inputs = inputs;
    }, values);
    return Forward(*open_model(path, cpu(1)), ids, 40, {}).logits;
  };
  const auto without = logits(0, 0);
  EXPECT_TRUE(logits(8, 0) == without);
  EXPECT_FALSE(logits(8, 1) == without);
}

// A window as long as the text is none; a shorter one is another model.
TEST(FamilyWindow, EndsWhereTheConfigSays) {
  const auto ids = tokens_of_family(40);
  const auto logits = [&](int window) {
    const std::string source = scratch_dir() + "/window-" + std::to_string(window);
    std::filesystem::copy(golden("mistral_window"), source);
    std::ifstream in(golden("mistral_window") + "/config.json");
    auto config = nlohmann::json::parse(in);
    config["sliding_window"] = window;
    std::ofstream(source + "/config.json") << config;
    return Forward(*open_model(converted(source, "window", DType::f32), cpu(1)), ids, 7, {}).logits;
  };
  const auto all = logits(100), short_by_one = logits(39), as_long = logits(40);
  EXPECT_EQ(all, as_long);
  const auto v = static_cast<std::ptrdiff_t>(all.size()) / 40;
  EXPECT_TRUE(std::equal(all.begin(), all.end() - v, short_by_one.begin())) << "but for the last row, whose first position is out of sight";
  EXPECT_FALSE(std::equal(all.end() - v, all.end(), short_by_one.end() - v));
}

}  // namespace
}  // namespace aerie::test
