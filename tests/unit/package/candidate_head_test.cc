// The candidate head in conversion and in packages.
#include <cmath>
#include <numbers>
#include <random>

#include "core/import/candidate_head.h"
#include "core/platform/file.h"
#include "core/import/convert.h"
#include "core/import/inspect.h"
#include "unit/package/fixtures.h"

namespace aerie::test::candidate_head {

using kernels::DType;

std::vector<float> random_matrix(int64_t rows, int64_t cols, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> m(static_cast<size_t>(rows * cols));
  for (float& x : m) x = normal(random);
  return m;
}

// |w - up * down|^2 / |w|^2
double lost(const std::vector<float>& w, const LowRank& l, int64_t rows, int64_t cols, int64_t rank) {
  double off = 0, all = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) {
      double x = w[static_cast<size_t>(r * cols + c)];
      all += x * x;
      for (int64_t i = 0; i < rank; ++i)
        x -= static_cast<double>(l.up[static_cast<size_t>(r * rank + i)]) * static_cast<double>(l.down[static_cast<size_t>(i * cols + c)]);
      off += x * x;
    }
  return all > 0 ? off / all : 0;
}

// w = sum of sigma_i a_i b_i with orthonormal a_i and b_i (discrete cosines): its truncation is known.
TEST(LowRank, IsTheBestOfItsRank) {
  constexpr int64_t V = 600, H = 48;
  std::vector<float> w(V * H);
  double all = 0;
  std::vector<double> sigma;
  for (int64_t i = 0; i < H; ++i) {
    sigma.push_back(std::pow(0.9, static_cast<double>(i)));
    all += sigma.back() * sigma.back();
    const auto cosine = [&](int64_t n, int64_t at) { return std::sqrt((i ? 2.0 : 1.0) / static_cast<double>(n)) * std::cos(std::numbers::pi * (static_cast<double>(at) + 0.5) * static_cast<double>(i) / static_cast<double>(n)); };
    for (int64_t r = 0; r < V; ++r)
      for (int64_t c = 0; c < H; ++c) w[static_cast<size_t>(r * H + c)] += static_cast<float>(10 * sigma.back() * cosine(V, r) * cosine(H, c));
  }
  double best = 0;
  for (int64_t rank = 1; rank <= H; ++rank) {
    best += sigma[static_cast<size_t>(rank - 1)] * sigma[static_cast<size_t>(rank - 1)] / all;
    const auto l = low_rank(w, V, H, rank);
    ASSERT_TRUE(l.ok());
    EXPECT_NEAR(l->kept, best, 2e-3) << rank;
    EXPECT_NEAR(lost(w, *l, V, H, rank), 1 - best, 2e-3) << rank;
    for (int64_t i = 0; i < rank; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (int64_t c = 0; c < H; ++c) dot += static_cast<double>(l->down[static_cast<size_t>(i * H + c)]) * static_cast<double>(l->down[static_cast<size_t>(j * H + c)]);
        ASSERT_NEAR(dot, i == j ? 1.0 : 0.0, 1e-5) << rank << " " << i << " " << j;
      }
  }
}

TEST(LowRank, OfFullRankLosesNothingAndOddShapesAreFine) {
  for (const auto& [v, h] : {std::pair<int64_t, int64_t>{1, 1}, {3, 8}, {1000, 33}, {40, 40}}) {
    const auto w = random_matrix(v, h, 1);
    const auto l = low_rank(w, v, h, h);
    ASSERT_TRUE(l.ok());
    EXPECT_LT(lost(w, *l, v, h, h), 1e-9) << v << "x" << h;
    EXPECT_NEAR(l->kept, 1, 1e-4);
  }
  const auto zero = low_rank(std::vector<float>(20 * 8), 20, 8, 3);
  ASSERT_TRUE(zero.ok());
  for (const float x : zero->up) EXPECT_EQ(x, 0.0f);
  EXPECT_FALSE(low_rank(std::vector<float>(20 * 8, NAN), 20, 8, 3).ok());
  int asked = 0;
  EXPECT_EQ(low_rank(std::vector<float>(20 * 8, 1), 20, 8, 3, [&] { return ++asked < 3; }).status().code(), Code::cancelled);
  EXPECT_EQ(asked, 3);
}

struct Converted {
  Folder folder;
  ConvertOptions options;
  std::vector<std::string> notes;
  explicit Converted(DType dtype, int32_t rank, LlamaConfig c = small_config()) {
    EXPECT_TRUE(write_target(folder / "t.aerie", c, DType::f32).ok());
    options.source = folder / "t.aerie";
    options.output = folder / "out.aerie";
    options.dtype = dtype;
    options.candidate_rank = rank;
    options.warnings = &notes;
  }
  std::shared_ptr<const Package> run() {
    const Status s = convert(options);
    EXPECT_TRUE(s.ok()) << s.message();
    auto p = Package::open(options.output);
    EXPECT_TRUE(p.ok()) << p.status().message();
    return p.ok() ? *p : nullptr;
  }
};

TEST(ConvertCandidateHead, IsStoredBesideTheSameModel) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::fp8, DType::int8, DType::int4, DType::q4_1, DType::mxfp4})
    for (const bool tied : {false, true}) {
      LlamaConfig c = small_config();
      c.tied = tied;
      Converted job(dtype, 5, c);
      const auto p = job.run();
      ASSERT_TRUE(p);
      EXPECT_EQ(p->fingerprint(), kFingerprint);
      const auto down = p->tensor("candidate.down"), up = p->tensor("candidate.up");
      ASSERT_TRUE(down.ok() && up.ok());
      EXPECT_EQ(down->rows, 5);
      EXPECT_EQ(down->cols, 8);
      EXPECT_EQ(up->rows, 20);
      EXPECT_EQ(up->cols, 5);
      const DType want = kernels::is_nibbles(dtype) ? DType::int8 : dtype;
      EXPECT_EQ(down->dtype, want);
      EXPECT_EQ(up->dtype, want);
      ASSERT_EQ(job.notes.size(), 1u);
      EXPECT_NE(job.notes[0].find("rank 5"), std::string::npos);
      if (dtype == DType::f32) {  // made of the LM head, which is the embedding when tied
        LowRank l{std::vector<float>(5 * 8), std::vector<float>(20 * 5), 0};
        for (int64_t r = 0; r < 5; ++r)
          for (int64_t k = 0; k < 8; ++k) l.down[static_cast<size_t>(r * 8 + k)] = kernels::panel16_at(*down, r, k);
        for (int64_t r = 0; r < 20; ++r)
          for (int64_t k = 0; k < 5; ++k) l.up[static_cast<size_t>(r * 5 + k)] = kernels::panel16_at(*up, r, k);
        EXPECT_LT(lost(values(tied ? "embed" : "lm_head", 160), l, 20, 8, 5), 0.3);
        EXPECT_GT(lost(values(tied ? "lm_head" : "embed", 160), l, 20, 8, 5), 0.3);
      }
      const auto text = inspect(job.options.output, false);
      ASSERT_TRUE(text.ok());
      EXPECT_NE(text->find("candidate_rank: 5"), std::string::npos);
    }
}

TEST(ConvertCandidateHead, IsTheLmHeadsWhereverThatStands) {
  Converted job(DType::f32, 5);
  const auto down = [&] {
    const auto p = job.run();
    std::vector<float> all;
    for (int64_t i = 0; i < 5 * 8; ++i) all.push_back(kernels::panel16_at(*p->tensor("candidate.down"), i / 8, i % 8));
    return all;
  };
  const auto want = down();
  Parts parts = take_apart(*aerie::platform::read_file(job.options.source, 1 << 20));
  auto& tensors = parts.manifest.tensors;
  const auto at = [&](const char* name) { return std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; }); };
  ASSERT_LT(at("embed"), at("lm_head"));
  std::iter_swap(at("embed"), at("lm_head"));
  spit(job.options.source, put_together(parts));
  EXPECT_EQ(down(), want);
}

TEST(ConvertCandidateHead, IsKeptReplacedOrDroppedByTheNextConversion) {
  Converted job(DType::int8, 5);
  job.run();
  job.options.source = job.folder / "first.aerie";
  fs::rename(job.options.output, job.options.source);
  for (const auto& [rank, want] : {std::pair<int32_t, int64_t>{0, 5}, {3, 3}, {-1, 0}}) {
    job.options.candidate_rank = rank;
    job.options.dtype = DType::int4;
    const auto p = job.run();
    ASSERT_TRUE(p);
    EXPECT_EQ(p->has("candidate.down"), want > 0);
    EXPECT_EQ(p->has("candidate.up"), want > 0);
    if (want == 0) continue;
    EXPECT_EQ(p->tensor("candidate.up")->cols, want);
    EXPECT_EQ(p->tensor("candidate.up")->dtype, DType::int8);
  }
}

TEST(ConvertCandidateHead, WhatCannotBeIsRefused) {
  const auto refused = [](int32_t rank, const char* words) {
    Converted job(DType::int8, rank);
    const Status s = convert(job.options);
    EXPECT_EQ(s.code(), Code::invalid_argument);
    EXPECT_NE(s.message().find(words), std::string::npos) << s.message();
    EXPECT_FALSE(fs::exists(job.options.output));
  };
  refused(9, "rank 9 is above the hidden size, 8");
  refused(-2, "rank -2");
  Converted job(DType::int8, 4);
  job.options.source = std::string(AERIE_SOURCE_DIR) + "/samples/models/demo-eagle.aerie";
  EXPECT_NE(convert(job.options).message().find("part of its target"), std::string::npos);
  job.options.source = std::string(AERIE_SOURCE_DIR) + "/tests/golden/heads/eagle";
  job.options.drafter_for = job.folder / "t.aerie";
  EXPECT_NE(convert(job.options).message().find("part of its target"), std::string::npos);
}

TEST(PackageCandidateHead, EveryShapeIsJudged) {
  Converted job(DType::int8, 5);
  job.run();
  const Bytes file = slurp(job.options.output);
  const auto refused = [&](const std::string& words, const std::function<void(package::Manifest&)>& change) {
    Parts parts = take_apart(file);
    change(parts.manifest);
    const Bytes bad = put_together(parts);
    const auto p = Package::open_memory(bad, "bad.aerie");
    ASSERT_FALSE(p.ok()) << words;
    EXPECT_EQ(p.status().code(), Code::bad_format);
    for (const std::string& w : {std::string("bad.aerie"), words})
      EXPECT_NE(p.status().message().find(w), std::string::npos) << w << " / " << p.status().message();
  };
  const auto tensor = [](package::Manifest& m, const std::string& name) -> package::TensorRow& {
    for (auto& t : m.tensors)
      if (t.name == name) return t;
    std::abort();
  };
  // Shapes whose bytes are right, so that only their meaning is wrong: panels hide up to 16 rows and 32 columns.
  refused("candidate.down: shape (5, 7)", [&](auto& m) { tensor(m, "candidate.down").cols = 7; });
  refused("candidate.down: shape (9, 8)", [&](auto& m) { tensor(m, "candidate.down").rows = 9; });
  refused("candidate.up: shape (20, 5)", [&](auto& m) { tensor(m, "candidate.down").rows = 6; });
  refused("candidate.up: shape (20, 4)", [&](auto& m) { tensor(m, "candidate.up").cols = 4; });
  refused("candidate.up: shape (21, 5)", [&](auto& m) { tensor(m, "candidate.up").rows = 21; });
  refused("candidate.up: shape", [&](auto& m) { tensor(m, "candidate.up").rows = int64_t{1} << 40; });
  refused("candidate.down: the tensor is missing", [&](auto& m) { tensor(m, "candidate.down").name = "other"; });
  refused("candidate.up: the tensor is missing", [&](auto& m) { tensor(m, "candidate.up").name = "other"; });
  Converted wide(DType::f32, 5);
  wide.run();
  Parts parts = take_apart(slurp(wide.options.output));
  package::TensorRow& up = tensor(parts.manifest, "candidate.up");
  up.layout = kernels::Layout::row_major;
  up.rows = 32;  // the same number of bytes
  const auto p = Package::open_memory(put_together(parts), "bad.aerie");
  EXPECT_NE(p.status().message().find("candidate.up"), std::string::npos) << p.status().message();
}

}  // namespace aerie::test::candidate_head
