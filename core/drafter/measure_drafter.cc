#include "core/drafter/measure_drafter.h"

#include <algorithm>

#include "core/drafter/draft_sequence.h"
#include "core/model/cost_key.h"
#include "core/model/measure.h"

namespace aerie {

namespace {

constexpr int32_t kWidth = 10;       // children a node, as most policies ask
constexpr int32_t kHostDepth = 16;
constexpr int64_t kChunk = 64;       // tokens shown at once, as in prefill
constexpr int32_t kMostObserved = 16;

// A text for one drafter to read: what it says does not matter, but look-ups should find something.
class Reader {
 public:
  Reader(const std::shared_ptr<Drafter>& drafter, const MeasureOptions& options, int64_t longest)
      : drafter_(*drafter), options_(options) {
    const int32_t vocab = drafter_.target()->config().vocab_used;
    for (int64_t i = 0; i < longest + 1024; ++i) text_.push_back(measured_token((i * i + 7 * i) % std::min(vocab, 211), vocab));
    if (drafter_.wants_features()) {
      cols_ = static_cast<int64_t>(drafter_.taps().size()) * drafter_.target()->config().hidden;
      zeros_.assign(static_cast<size_t>(kChunk * cols_), 0.0f);
    }
  }

  Status start(const std::shared_ptr<Drafter>& drafter, int64_t longest) {
    if (drafter->resources().reads_target) target_.push_back(std::make_unique<KvSequence>(drafter->target()->pool(), longest, 0));
    AERIE_ASSIGN(sequence_, DraftSequence::create(drafter, longest, target_.empty() ? nullptr : target_[0].get()));
    AERIE_TRY(sequence_->begin());
    const size_t index_bytes = (size_t{2} << 20) + static_cast<size_t>(longest) * 4;
    AERIE_ASSIGN(timer_, PassTimer::create(drafter_.target()->device(), options_, index_bytes));
    return {};
  }

  // The target's keys and values before it are there.
  Status target_to(int64_t end) {
    if (target_.empty() || end <= target_end_) return {};
    AERIE_TRY(target_[0]->reserve(end));
    AERIE_TRY(fill_context(*drafter_.target(), target_, static_cast<int32_t>(end), *timer_));
    target_end_ = end;
    return {};
  }

  Status read_to(int64_t end) {
    AERIE_TRY(target_to(end));
    while (sequence_->observed() < end) {
      const int64_t to = std::min(end, sequence_->observed() + kChunk);
      const Result<double> ms = timer_->time([&](Plan& plan) { return observe(plan, to); });
      if (!ms.ok()) return ms.status();
      sequence_->observed_to(to);
    }
    return {};
  }

  // The first pass of a cycle: n tokens are observed, and the newest is the root.
  Result<double> root_pass(int64_t size, int32_t n) {
    if (sequence_->observed() > size - n) AERIE_TRY(sequence_->rollback(size - n + 1));
    AERIE_TRY(target_to(size));
    AERIE_TRY(read_to(size - n));
    tree_.reset(text_[static_cast<size_t>(size) - 1]);
    const int32_t root = 0;
    const Result<double> ms = timer_->time([&](Plan& plan) -> Status {
      sequence_->begin_cycle(size);
      AERIE_TRY(observe(plan, size));
      // propose() speaks of rows behind what was observed, as in a session, where the plan has not run yet either.
      return sequence_->propose(plan, tree_, {&root, 1}, kWidth, draw());
    });
    if (!ms.ok()) return ms;
    sequence_->observed_to(size);
    AERIE_TRY(check());
    return ms;
  }

  // A later pass: n nodes of the first level, after a root pass.
  Result<double> level_pass(int64_t size, int32_t n) {
    tree_.reset(text_[static_cast<size_t>(size) - 1]);
    std::vector<int32_t> token, frontier;
    for (int32_t i = 0; i < n; ++i) {
      token.push_back(measured_token(i, drafter_.target()->config().vocab_used));
      frontier.push_back(i + 1);
    }
    const std::vector<float> confidence(static_cast<size_t>(n), 0.5f);
    tree_.add_children(0, token, confidence);
    sequence_->begin_cycle(size);
    const Result<double> ms = timer_->time([&](Plan& plan) { return sequence_->propose(plan, tree_, frontier, kWidth, draw()); });
    if (ms.ok()) AERIE_TRY(check());
    return ms;
  }

  // A drafter on the host, one token further at each call.
  Result<double> host_pass(int64_t size) {
    const std::span<const int32_t> text(text_.data(), static_cast<size_t>(size + host_calls_++ % 1000));
    tree_.reset(text.back());
    const auto start = kernels::Clock::now();
    AERIE_TRY(sequence_->propose_host(text, kWidth, kHostDepth, &tree_));
    if (options_.keep_going && !options_.keep_going()) return error(Code::cancelled, "profile: cancelled");
    return std::max(1e-6, std::chrono::duration<double, std::milli>(kernels::Clock::now() - start).count());
  }

 private:
  // Nonsense costs what it likes.
  Status check() const { return sequence_->check_candidates(drafter_.target()->config().vocab_used); }
  Status observe(Plan& plan, int64_t end) {
    kernels::Tensor features;
    if (const int64_t n = end - sequence_->observed(); cols_ > 0) {
      features = plan.scratch(n, cols_);
      if (features) plan.add(kernels::Upload{features.data, zeros_.data(), n * cols_ * 4});
    }
    return sequence_->observe(plan, text_, end, features);
  }
  // The noise of a first session: shared, as by default.
  static DraftDraw draw() {
    DraftDraw d;
    d.shared_noise = true;
    d.temperature = 1;
    d.seed = 1;
    return d;
  }

  Drafter& drafter_;
  const MeasureOptions& options_;
  std::vector<int32_t> text_;
  int64_t cols_ = 0;
  std::vector<float> zeros_;
  std::vector<std::unique_ptr<KvSequence>> target_;  // a text of the target's, for a drafter that reads that; or none
  int64_t target_end_ = 0;
  std::unique_ptr<DraftSequence> sequence_;
  std::unique_ptr<PassTimer> timer_;
  DraftTree tree_;
  int64_t host_calls_ = 0;
};

}  // namespace

DrafterKey drafter_key(Drafter& drafter) {
  const Package* package = drafter.resources().package.get();
  return {drafter.id(), package ? package->fingerprint() : "", weight_dtypes(package)};
}

Status Drafter::use_costs(std::shared_ptr<const CostTable> table) {
  AERIE_TRY(check_key(table->key, cost_key(*target())));
  AERIE_ASSIGN(const DrafterCosts* const found, table->find(drafter_key(*this)));
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  costs_ = std::shared_ptr<const DrafterCosts>(std::move(table), found);
  return {};
}

std::shared_ptr<const DrafterCosts> Drafter::costs() {
  const std::lock_guard<std::mutex> lock(sequence_mutex_);
  return costs_;
}

Result<DrafterCosts> measure_drafter(const std::shared_ptr<Drafter>& drafter, const MeasureOptions& options) {
  const LlamaConfig& target = drafter->target()->config();
  DrafterCosts out;
  out.name = drafter->id();
  out.key = drafter_key(*drafter);
  // A text short of it by what a cycle may add; and one token before the first row.
  const int64_t longest = std::max<int64_t>(kMostObserved + 2, target.max_context - 1);
  std::vector<int32_t> contexts = options.contexts.empty() ? default_contexts(longest) : options.contexts;
  std::sort(contexts.begin(), contexts.end());
  for (int32_t& c : contexts) c = std::clamp(c, kMostObserved + 2, static_cast<int32_t>(longest));
  contexts.erase(std::unique(contexts.begin(), contexts.end()), contexts.end());
  std::vector<int32_t> counts, observed;
  for (const int32_t n : options.rows.empty() ? default_row_counts() : options.rows) {
    if (n <= std::min(kMaxCostRows, target.vocab_used)) counts.push_back(n);
    if (n <= kMostObserved) observed.push_back(n);
  }
  std::sort(counts.begin(), counts.end());
  std::sort(observed.begin(), observed.end());
  const bool levels = !drafter->host_tokens() && drafter->needs().levels == 1 && drafter->needs().max_depth != 1;
  Reader reader(drafter, options, longest);
  Status s = reader.start(drafter, longest);
  std::vector<CostPoint> roots, deeper;
  for (const int32_t c : contexts) {
    if (s.ok() && !drafter->host_tokens()) s = reader.read_to(c);
    const auto sample = [&](const std::vector<int32_t>& rows, const std::function<Result<double>(int32_t)>& pass, size_t width,
                            std::vector<CostPoint>* all) {
      if (!s.ok()) return;
      Result<std::vector<CostPoint>> some = sample_row_counts(*drafter->target()->device(), 1, c, rows, options, pass);
      if (some.ok() && width > 0 && some->size() < width) some = error(Code::limit, "profile: out of time");
      if (some.ok()) all->insert(all->end(), some->begin(), some->end());
      s = some.status();
    };
    const size_t n_roots = roots.size(), n_deeper = deeper.size();
    if (drafter->host_tokens()) {
      sample({1}, [&](int32_t) { return reader.host_pass(c); }, 0, &roots);
    } else {
      sample(observed, [&](int32_t n) { return reader.root_pass(c, n); }, c == contexts[0] ? 0 : observed.size(), &roots);
      if (s.ok() && c == contexts[0]) observed.resize(roots.size());
      if (levels) sample(counts, [&](int32_t n) { return reader.level_pass(c, n); }, c == contexts[0] ? 0 : counts.size(), &deeper);
      if (s.ok() && levels && c == contexts[0]) counts.resize(deeper.size());
    }
    if (s.ok()) continue;
    // Contexts without room or time are left out, but not the first.
    if (s.code() != Code::limit || c == contexts[0]) return s.at(std::string("drafter ") + drafter->id());
    roots.resize(n_roots);
    deeper.resize(n_deeper);
    break;
  }
  AERIE_ASSIGN(out.roots, CostGrid::make(std::move(roots)));
  AERIE_ASSIGN(out.levels, CostGrid::make(std::move(deeper)));
  return out;
}

Result<CostTable> measure_costs(const Model& model, std::span<const std::shared_ptr<Drafter>> drafters,
                                const MeasureOptions& given, std::chrono::milliseconds share,
                                const std::function<void(uint64_t done, uint64_t total)>& progress) {
  MeasureOptions options = given;
  const size_t contexts = given.contexts.empty() ? default_contexts(model.config().max_context - 1).size() : given.contexts.size();
  const size_t rows = given.rows.empty() ? default_row_counts().size() : given.rows.size();
  // About: a drafter has root passes too, a host drafter nothing else.
  const uint64_t total = contexts * rows * (given.batches.size() + drafters.size());
  uint64_t done = 0;
  if (progress) options.passed = [&] { progress(done = std::min(done + 1, total), total); };
  // Where not even one point fits into the share, two are measured all the same: a table says at least what a row costs.
  const auto in_its_share = [&](const auto& measure) {
    if (share.count() == 0) return measure(options);
    options.deadline = kernels::Clock::now() + share;
    auto result = measure(options);
    if (result.ok() || result.status().code() != Code::limit) return result;
    MeasureOptions least = options;
    least.deadline = kernels::kNoDeadline;
    least.contexts = {1};
    least.rows = {1, 16};
    least.least_samples = least.most_samples = 1;
    return measure(least);
  };
  CostTable t;
  t.key = cost_key(model);
  AERIE_ASSIGN(t.target, in_its_share([&](const MeasureOptions& o) { return measure_target(model, o); }));
  for (const auto& drafter : drafters) {
    if (drafter->target().get() != &model) return error(Code::mismatch, "the drafter was opened for another model");
    AERIE_ASSIGN(DrafterCosts d, in_its_share([&](const MeasureOptions& o) { return measure_drafter(drafter, o); }));
    const std::string id = d.name;
    const auto taken = [&] {
      return std::any_of(t.drafters.begin(), t.drafters.end(), [&](const DrafterCosts& other) { return other.name == d.name; });
    };
    for (int k = 2; taken(); ++k) d.name = id + "#" + std::to_string(k);
    t.drafters.push_back(std::move(d));
  }
  if (progress) progress(total, total);
  return t;
}

}  // namespace aerie
