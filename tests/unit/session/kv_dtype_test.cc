// Keys and values in bf16 and int8: the promise holds for them as for f32, and little is lost.
#include "core/text/tokenizer.h"
#include "tests/support/forward.h"
#include "tests/support/rounds_as_cpu.h"

namespace aerie::test {
namespace {

using kernels::DType;

ModelOptions with_kv(DType t) {
  ModelOptions m;
  m.kv_dtype = t;
  return m;
}

class KvDtype : public testing::TestWithParam<DType> {
 protected:
  static std::string target() { return converted(golden("gqa_tied"), "kv-target", DType::int8); }
  static std::string draft_model() { return converted(golden("gqa_tied"), "kv-small", DType::q4_1); }
};

TEST_P(KvDtype, BitsDoNotDependOnChunksOrThreads) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < 70; ++i) ids.push_back(i * 37 % 90);
  const std::string path = target();
  const Forward one(*open_model(path, cpu(1), with_kv(GetParam())), ids, 1, {});
  for (const int threads : {1, 3})
    for (const int64_t chunk : {2, 33, 70})
      ASSERT_EQ(one.logits, Forward(*open_model(path, cpu(threads), with_kv(GetParam())), ids, chunk, {}).logits)
          << threads << " threads, chunks of " << chunk;
  const Forward exact(*open_model(path, cpu(1)), ids, 70, {});
  EXPECT_NE(exact.logits, one.logits) << "the option does nothing";
}

// Accepted drafts are copied from tree slots to pages, rejected ones leave codes and scales behind, a rewind reads over
// what was written: the text stays that of plain decode.
TEST_P(KvDtype, DraftsAndRewindsChangeNoToken) {
  const std::string path = target();
  SessionOptions o;
  o.sampling.temperature = 0.8f;
  o.sampling.seed = 3;
  o.ignore_eos = true;
  const std::vector<int32_t> prompt = {26, 16, 50, 18, 15, 45, 37, 77, 51, 70, 19, 5};
  auto alone = must(Session::create(open_model(path, cpu(1), with_kv(GetParam())), o));
  must(alone->append(prompt));
  const auto want = generate(*alone, 90);
  std::mt19937 random(2);
  for (const int threads : {1, 2}) {
    const auto model = open_model(path, cpu(threads), with_kv(GetParam()));
    o.drafter = open_drafter(model, "small_model", draft_model());
    for (const char* tree : {"chain", "static", "eagle2"}) {
      o.tree.name = tree;
      auto session = must(Session::create(model, o));
      for (const int32_t t : prompt) must(session->append({&t, 1}));
      std::vector<int32_t> got;
      while (got.size() < want.size()) {
        StepResult r;
        must(
            session->step(static_cast<int32_t>(want.size() - got.size()), std::chrono::microseconds(random() % 3), &r));
        for (const EmittedToken& t : r.tokens) got.push_back(t.id);
        if (random() % 8 == 0 && got.size() > 3) {
          got.resize(got.size() - 1 - random() % 3);
          must(session->rewind(prompt.size() + got.size()));
        }
      }
      EXPECT_EQ(got, want) << tree;
      EXPECT_GT(session->statistics().accepted, 0u) << tree;
    }
  }
}

TEST_P(KvDtype, WorksOnADeviceThatTheHostCannotRead) {
  const std::vector<int32_t> ids = {1, 2, 3, 40, 50, 60, 7, 8, 9};
  const std::string path = target();
  const RoundsAsCpu same;
  auto mock = std::shared_ptr<kernels::Device>(kernels::make_mock_device(kernels::make_reference_device()));
  const Forward a(*open_model(path, mock, with_kv(GetParam())), ids, 4, {});
  const Forward b(*open_model(path, cpu(1), with_kv(GetParam())), ids, 9, {});
  ASSERT_EQ(a.logits.size(), b.logits.size());
  for (size_t i = 0; i < a.logits.size(); ++i) ASSERT_NEAR(a.logits[i], b.logits[i], 0.02) << i;
}

// The demo target reads a text; its mean loss for each token is what it is with f32 KV, nearly.
TEST_P(KvDtype, TheDemoTargetLosesLittle) {
  const std::string demo = source_dir() + "/samples/models/demo.aerie";
  const auto f32 = open_model(demo, cpu(2)), model = open_model(demo, cpu(2), with_kv(GetParam()));
  const auto tokenizer = must(text::Tokenizer::deserialize(model->package().blob("tokenizer")));
  std::ifstream in(source_dir() + "/LICENSE");
  const auto all = must(tokenizer->encode(std::string(std::istreambuf_iterator<char>(in), {})));
  const auto window = std::min<size_t>(256, static_cast<size_t>(model->config().max_context));
  ASSERT_GT(all.size(), 4 * window);
  const auto loss = [&](const Model& m) {
    double sum = 0;
    for (size_t w = 0; w < 4; ++w) {
      const auto first = all.begin() + static_cast<int64_t>(w * window);
      const std::vector<int32_t> ids(first, first + static_cast<int64_t>(window));
      const Forward f(m, ids, 64, {});
      const auto v = static_cast<size_t>(m.config().vocab_size);
      for (size_t i = 0; i + 1 < window; ++i) {
        const float* row = f.logits.data() + i * v;
        const double top = *std::max_element(row, row + v);
        double total = 0;
        for (size_t t = 0; t < v; ++t) total += std::exp(row[t] - top);
        sum += top + std::log(total) - row[ids[i + 1]];
      }
    }
    return sum / static_cast<double>(4 * (window - 1));
  };
  const double want = loss(*f32), got = loss(*model);
  RecordProperty("loss_f32_kv", std::to_string(want));
  RecordProperty("loss", std::to_string(got));
  EXPECT_NE(got, want);
  EXPECT_NEAR(got, want, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Types, KvDtype, testing::Values(DType::bf16, DType::int8),
                         [](const auto& info) { return std::string(info.param == DType::int8 ? "int8" : "bf16"); });

TEST(KvShape, Int8TakesAQuarterAndItsScales) {
  const KvShape f32{3, 2, 64, DType::f32}, bf16{3, 2, 64, DType::bf16}, int8{3, 2, 64, DType::int8};
  EXPECT_EQ(f32.bytes_per_slot(), 2 * 3 * 2 * 64 * 4);
  EXPECT_EQ(bf16.bytes_per_slot(), f32.bytes_per_slot() / 2);
  EXPECT_EQ(int8.bytes_per_slot(), f32.bytes_per_slot() / 4 + 2 * 3 * 2 * 4);
}

}  // namespace
}  // namespace aerie::test
