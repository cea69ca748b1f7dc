// Every kind of drafter, and what its guesses came to: where its state differs, so does this.
#pragma once

#include <iterator>

#include "tests/support/models.h"

namespace aerie::test {

using Counts = std::vector<uint64_t>;

class ReuseTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (target_) return;
    target_ = new std::string(converted(golden("mha"), "reuse-target", kernels::DType::int8));
    eagle_ = new std::string(converted(golden("eagle_mha"), "reuse-eagle", kernels::DType::bf16, *target_));
    small_ = new std::string(converted(golden("mha"), "reuse-small", kernels::DType::q4_1));
    for (const char* kind : {"eagle3", "fasteagle", "medusa", "hydra", "dflash"})
      heads_->push_back(converted(source_dir() + "/tests/golden/heads/" + kind, std::string("reuse-") + kind,
                                  kernels::DType::bf16, *target_));
  }
  static inline std::string *target_ = nullptr, *eagle_ = nullptr, *small_ = nullptr;
  static inline std::vector<std::string>* heads_ = new std::vector<std::string>;

  struct Kind {
    std::string plugin, package;
  };
  static std::vector<Kind> kinds() {
    return {{"eagle", *eagle_},         {"eagle", (*heads_)[0]}, {"fasteagle", (*heads_)[1]}, {"medusa", (*heads_)[2]},
            {"hydra", (*heads_)[3]},    {"dflash", (*heads_)[4]}, {"small_model", *small_},   {"ngram", ""},            {"lookahead", ""}};
  }
  static std::shared_ptr<Drafter> open(const std::shared_ptr<Model>& model, const Kind& kind) {
    return open_drafter(model, kind.plugin, kind.package);
  }
  static SessionOptions options(std::shared_ptr<Drafter> drafter, float temperature, uint64_t stream = 5) {
    SessionOptions o;
    o.drafter = std::move(drafter);
    o.sampling.temperature = temperature;
    o.sampling.seed = 11;
    o.sampling.stream = stream;
    o.ignore_eos = true;
    return o;
  }
  static std::vector<int32_t> prompt(size_t n) {
    std::vector<int32_t> p;
    for (size_t i = 0; i < n; ++i) p.push_back(26 + static_cast<int32_t>(i * i % 7 * 13 + i % 5));
    return p;
  }
  static std::unique_ptr<Session> begun(const std::shared_ptr<Model>& model, const SessionOptions& o,
                                        const std::vector<int32_t>& text) {
    auto s = must(Session::create(model, o));
    must(s->append(text));
    return s;
  }
  // The next `n` tokens, and what drafting them came to.
  static std::pair<std::vector<int32_t>, Counts> more(Session& s, size_t n) {
    const SessionStatistics before = s.statistics();
    auto tokens = generate(s, n);
    const SessionStatistics& now = s.statistics();
    Counts c{now.accepted - before.accepted, now.cycles - before.cycles, now.verified - before.verified,
             now.drafter_failures - before.drafter_failures};
    for (size_t d = 0; d < std::size(now.tried); ++d) {
      c.push_back(now.tried[d] - before.tried[d]);
      c.push_back(now.taken[d] - before.taken[d]);
    }
    return {std::move(tokens), std::move(c)};
  }
};

}  // namespace aerie::test
