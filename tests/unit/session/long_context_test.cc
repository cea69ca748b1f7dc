// Contexts of several spans: attention is cut into more tasks there, and the promise goes on.
#include "tests/support/forward.h"

namespace aerie::test {
namespace {

using kernels::DType;
using kernels::kSpanSlots;

std::string long_model(DType dtype) {
  return converted(with_long_context("gqa_tied"), "long-" + std::to_string(static_cast<int>(dtype)), dtype);
}

std::vector<int32_t> some_tokens(int32_t n) { return random_tokens(n, 90, 12); }

TEST(LongContext, BitsDoNotDependOnChunksOrThreads) {
  const auto ids = some_tokens(3000);
  const std::string path = long_model(DType::int8);
  for (const DType kv : {DType::f32, DType::int8}) {
    ModelOptions m;
    m.kv_positions = 4096;
    m.kv_dtype = kv;
    const Forward one(*open_model(path, cpu(1), m), ids, 1, {});
    for (const auto& [threads, chunk] : {std::pair{1, 100}, {2, 64}, {3, 1000}}) {
      const Forward other(*open_model(path, cpu(threads), m), ids, chunk, {});
      ASSERT_TRUE(one.logits == other.logits) << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST(LongContext, RoomForKeysAndValuesFollowsTheContextWithinBounds) {
  for (const auto& [context, room] : {std::pair{512, 4096}, {4096, 16384}, {131072, 32768}}) {
    const std::string path = converted(with_long_context("gqa_tied", context), "room-" + std::to_string(context), DType::f32);
    EXPECT_EQ(open_model(path, cpu(1))->pool()->free_positions(), room) << context;
  }
}

TEST(LongContext, DraftsAcrossASpansEndChangeNoToken) {
  const std::string path = long_model(DType::int8), small = long_model(DType::int4);
  SessionOptions o;
  o.sampling.temperature = 0.8f;
  o.sampling.seed = 6;
  o.ignore_eos = true;
  for (const int32_t prompt : {kSpanSlots - 20, 2 * kSpanSlots - 10}) {
    const auto ids = some_tokens(prompt);
    auto plain = must(Session::create(open_model(path, cpu(1)), o));
    must(plain->append(ids));
    const auto want = generate(*plain, 60);
    for (const int threads : {1, 2}) {
      const auto model = open_model(path, cpu(threads));
      SessionOptions with = o;
      with.drafter = open_drafter(model, "small_model", small);
      for (const char* tree : {"chain", "eagle2"}) {
        with.tree.name = tree;
        auto session = must(Session::create(model, with));
        must(session->append(ids));
        std::vector<int32_t> got = generate(*session, 50);
        must(session->rewind(ids.size() + 5));  // back before the span's end
        got.resize(5);
        const auto rest = generate(*session, 55);
        got.insert(got.end(), rest.begin(), rest.end());
        EXPECT_EQ(got, want) << prompt << " " << tree << ", " << threads << " threads";
        EXPECT_GT(session->statistics().accepted, 0u);
      }
    }
  }
}

TEST(LongContext, WorksOnADeviceThatTheHostCannotRead) {
  const auto ids = some_tokens(kSpanSlots + 30);
  const std::string path = long_model(DType::f32);
  auto mock = std::shared_ptr<kernels::Device>(kernels::make_mock_device(kernels::make_reference_device()));
  const Forward a(*open_model(path, mock), ids, 600, {});
  const Forward b(*open_model(path, cpu(2)), ids, 64, {});
  ASSERT_EQ(a.logits.size(), b.logits.size());
  for (size_t i = 0; i < a.logits.size(); ++i) ASSERT_NEAR(a.logits[i], b.logits[i], 1e-3) << i;
}

}  // namespace
}  // namespace aerie::test
