// Measuring a target and its drafters, and what sessions make of a table.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "core/drafter/measure_drafter.h"
#include "core/model/cost_key.h"
#include "core/model/measure.h"
#include "tests/support/models.h"
#include "tests/support/wrapped_device.h"

namespace aerie::test {
namespace {

const std::vector<int32_t> kProfiledText = {26, 106, 150, 108, 115, 45, 37, 77, 51, 70, 119, 95, 26, 106, 150, 108};

std::string target_package() { return converted(golden("mha"), "profile-target", kernels::DType::int8); }
std::string head_package(const char* kind) {
  return converted(source_dir() + "/tests/golden/heads/" + kind, std::string("profile-") + kind, kernels::DType::bf16, target_package());
}

MeasureOptions few_points() {
  MeasureOptions o;
  o.contexts = {20, 100};
  o.rows = {1, 4, 9};
  o.least_samples = o.most_samples = 2;
  return o;
}

// Costs as if measured with `model`: a pass of n rows takes first + more * (n - 1) milliseconds.
std::shared_ptr<CostTable> made_table(const Model& model, double first, double more) {
  auto t = std::make_shared<CostTable>();
  t->key = cost_key(model);
  std::vector<CostPoint> points;
  for (const int32_t n : {1, 16, 128}) {
    const double ms = first + more * (n - 1);
    points.push_back({1, 64, n, ms, ms, ms, 1});
  }
  t->target = must(CostGrid::make(points));
  return t;
}

SessionOptions session_options(std::shared_ptr<Drafter> drafter, const char* tree) {
  SessionOptions o = options_for(std::move(drafter), tree, 0.7f, 4);
  o.measure_drafts = std::chrono::hours(1);  // a busy machine shall not leave a drafter unmeasured
  return o;
}

std::vector<int32_t> text_of(const std::shared_ptr<Model>& model, const SessionOptions& o, size_t n, SessionStatistics* stats = nullptr) {
  auto session = must(Session::create(model, o));
  must(session->append(kProfiledText));
  const auto out = generate(*session, n);
  if (stats) *stats = session->statistics();
  return out;
}

TEST(Profile, MeasuresEveryKindOfDrafterAndGivesEverythingBack) {
  const std::string target = target_package();
  const auto model = open_model(target, cpu(1));
  const int64_t room = model->pool()->free_positions();
  std::vector<std::shared_ptr<Drafter>> drafters;
  for (const auto& [library, package] :
       {std::pair<const char*, std::string>{"eagle", converted(golden("eagle_mha"), "profile-eagle", kernels::DType::bf16, target)},
        {"eagle", head_package("eagle3")}, {"fasteagle", head_package("fasteagle")}, {"medusa", head_package("medusa")},
        {"hydra", head_package("hydra")}, {"small_model", target}, {"small_model", target}, {"ngram", ""}, {"lookahead", ""},
        {"dflash", head_package("dflash")}})
    drafters.push_back(open_drafter(model, library, package));
  MeasureOptions o = few_points();
  o.batches = {1, 3};
  uint64_t last = 0, all = 0;
  const CostTable t = must(measure_costs(*model, drafters, o, std::chrono::milliseconds(0), [&](uint64_t done, uint64_t total) {
    EXPECT_GE(done, last);
    last = done;
    all = total;
  }));
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0u);
  EXPECT_EQ(t.target.points().size(), 2u * 2 * 3);
  for (const CostPoint& p : t.target.points()) {
    EXPECT_EQ(p.samples, 2);
    EXPECT_LE(p.low, p.ms);
    EXPECT_LE(p.ms, p.high);
  }
  ASSERT_EQ(t.drafters.size(), drafters.size());
  EXPECT_EQ(t.drafters[5].name, "small_model");
  EXPECT_EQ(t.drafters[6].name, "small_model#2");
  for (size_t i = 0; i < drafters.size(); ++i) {
    const DrafterCosts& d = t.drafters[i];
    const bool host = drafters[i]->host_tokens(), one_pass = drafters[i]->needs().levels > 1;
    EXPECT_EQ(d.roots.points().size(), host ? 2u : 2u * 3) << d.name;
    EXPECT_EQ(d.levels.points().size(), host || one_pass ? 0u : 2u * 3) << d.name;
    EXPECT_FALSE(drafters[i]->quarantined());
  }
  EXPECT_EQ(model->pool()->free_positions(), room);

  // The measured table serves; no token changes; the drafters are as good as new.
  const auto want = text_of(model, session_options(nullptr, "auto"), 60);
  const auto table = std::make_shared<const CostTable>(t);
  must(model->use_costs(table));
  for (const auto& drafter : drafters) {
    must(drafter->use_costs(table));
    for (const char* tree : {"auto", "cast"}) {
      SessionStatistics stats;
      EXPECT_EQ(text_of(model, session_options(drafter, tree), 60, &stats), want) << drafter->id() << " " << tree;
      EXPECT_EQ(stats.drafter_failures, 0u) << drafter->id();
    }
  }
}

// A machine on which each row of a pass takes a millisecond more.
class SlowRowsQueue final : public WrappedQueue {
 public:
  using WrappedQueue::WrappedQueue;
  Status submit(std::span<const kernels::Op> ops) override {
    rows_ = 0;
    for (const kernels::Op& op : ops)
      if (const auto* attention = std::get_if<kernels::Attention>(&op)) rows_ = std::max(rows_, attention->q.rows);
    return inner_->submit(ops);
  }
  Result<kernels::RunState> advance(kernels::Clock::time_point deadline) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::exchange(rows_, 0)));
    return inner_->advance(deadline);
  }

 private:
  int64_t rows_ = 0;
};

class SlowRows final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;

 private:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override {
    return std::make_unique<SlowRowsQueue>(std::move(inner));
  }
};

TEST(Profile, EveryPointHasTheTimeOfItsPass) {
  const auto model = open_model(target_package(), std::make_shared<SlowRows>(cpu(1)));
  MeasureOptions o = few_points();
  o.rows = {1, 32, 128};
  const CostGrid grid = must(measure_target(*model, o));
  for (const int32_t context : {20, 100})
    for (const int32_t rows : {1, 32, 128}) EXPECT_GE(grid.ms(1, context, rows), rows) << "behind " << context;
}

// Keys and values that nobody has written are read at another price, or are no numbers.
TEST(Profile, NothingIsReadThatNobodyWrote) {
  for (const kernels::DType dtype : {kernels::DType::f32, kernels::DType::bf16, kernels::DType::int8}) {
    ModelOptions options;
    options.kv_dtype = dtype;
    const auto model = open_model(target_package(), cpu(1), options);
    const kernels::KvCache& kv = model->pool()->cache();
    const int64_t row = kv.head_dim * kernels::kv_element_bytes(dtype);
    const auto holds = [&](int64_t slot) {  // what its first key and its last value are, scales too
      const auto* const data = static_cast<const unsigned char*>(kv.data);
      const int64_t last = (int64_t{2} * kv.layers * kv.kv_heads - 1) * kv.slots + slot;
      bool unwritten = data[slot * row] == 0xFF && data[last * row] == 0xFF;
      if (kv.scales) unwritten = unwritten && std::isnan(kv.scales[slot]) && std::isnan(kv.scales[last]);
      return !unwritten;
    };
    std::memset(kv.data, 0xFF, static_cast<size_t>(2 * kv.layers * kv.kv_heads * kv.slots * row));
    if (kv.scales) std::fill_n(kv.scales, 2 * kv.layers * kv.kv_heads * kv.slots, std::nanf(""));
    MeasureOptions o = few_points();
    o.batches = {1, 2};
    must(measure_target(*model, o));
    int64_t written = 0;
    for (int64_t slot = 0; slot < kv.slots; ++slot) written += holds(slot);
    EXPECT_GE(written, 2 * 100);
  }
}

TEST(Profile, CancelAndDeadline) {
  const auto model = open_model(target_package(), cpu(1));
  const auto drafter = open_drafter(model, "small_model", target_package());
  const int64_t room = model->pool()->free_positions();
  int polls = 0;
  MeasureOptions o = few_points();
  for (const int at : {0, 1, 7, 20, 40}) {
    polls = 0;
    o.keep_going = [&] { return polls++ < at; };
    EXPECT_EQ(measure_costs(*model, {&drafter, 1}, o, {}, {}).status().code(), Code::cancelled) << at;
    EXPECT_EQ(model->pool()->free_positions(), room);
  }
  o.keep_going = nullptr;
  o.deadline = kernels::Clock::now();
  EXPECT_EQ(measure_target(*model, o).status().code(), Code::limit);
  // A table is measured all the same: two points of each kind.
  o.deadline = kernels::kNoDeadline;
  const CostTable least = must(measure_costs(*model, {&drafter, 1}, o, std::chrono::milliseconds(-1), {}));
  EXPECT_EQ(least.target.row_counts(), (std::vector<int32_t>{1, 16}));
  EXPECT_EQ(least.drafters[0].levels.points().size(), 2u);
  // Whatever the time allows is a full grid that begins at one row.
  o.rows = default_row_counts();
  o.contexts = {};
  for (const int us : {200, 1000, 5000, 20000}) {
    o.deadline = kernels::Clock::now() + std::chrono::microseconds(us);
    const Result<CostGrid> some = measure_target(*model, o);
    if (some.ok()) EXPECT_EQ(some->points()[0].rows, 1) << us;
    else EXPECT_EQ(some.status().code(), Code::limit) << us;
    EXPECT_EQ(model->pool()->free_positions(), room);
  }
}

TEST(Profile, ForeignTablesAreRefusedAndNothingIsAttached) {
  const auto model = open_model(target_package(), cpu(1)), two = open_model(target_package(), cpu(2));
  ModelOptions bf16;
  bf16.kv_dtype = kernels::DType::bf16;
  const auto narrow = open_model(target_package(), cpu(1), bf16);
  const auto other = open_model(converted(golden("gqa_tied"), "profile-other", kernels::DType::int8), cpu(1));
  const auto requantised = open_model(converted(golden("mha"), "profile-int4", kernels::DType::int4), cpu(1));
  const auto refused = [&](const std::shared_ptr<Model>& m, const char* field) {
    const Status s = m->use_costs(made_table(*model, 1, 1));
    EXPECT_EQ(s.code(), Code::mismatch) << field;
    EXPECT_EQ(s.message().find(field), 0u) << s.message();
    EXPECT_EQ(m->costs(), nullptr);
  };
  refused(two, "threads");
  refused(narrow, "kv");
  refused(other, "model");
  refused(requantised, "weights");
  must(model->use_costs(made_table(*model, 1, 1)));
  ASSERT_NE(model->costs(), nullptr);
  const auto drafter = open_drafter(model, "ngram", "");
  const Status s = drafter->use_costs(made_table(*model, 1, 1));
  EXPECT_EQ(s.code(), Code::mismatch);
  EXPECT_NE(s.message().find("drafter: no costs of ngram"), std::string::npos) << s.message();
  EXPECT_EQ(drafter->costs(), nullptr);
}

TEST(Profile, AutoPicksSmallTreesWhereRowsAreDear) {
  const auto verified = [](double more, double draft) {
    const auto model = open_model(target_package(), cpu(1));
    const auto drafter = open_drafter(model, "small_model", target_package());
    auto table = made_table(*model, 10, more);
    DrafterCosts d;
    d.name = "small_model";
    d.key = drafter_key(*drafter);
    const CostPoint point{1, 64, 1, draft, draft, draft, 1};
    d.levels = must(CostGrid::make({point}));
    d.roots = must(CostGrid::make({point}));
    table->drafters.push_back(std::move(d));
    must(model->use_costs(table));
    must(drafter->use_costs(table));
    SessionOptions o = session_options(drafter, "auto");
    auto session = must(Session::create(model, o));
    must(session->append(kProfiledText));
    while (session->statistics().cycles < 1) {
      StepResult r;
      must(session->step(0, std::chrono::microseconds(0), &r));
    }
    return session->statistics();  // of the first cycle, before real passes have a say
  };
  const SessionStatistics cheap = verified(0.001, 0.001), dear = verified(10, 0.001), dear_drafts = verified(0.001, 1000);
  EXPECT_GE(cheap.verified, 20u);
  EXPECT_LE(dear.verified, 2u);
  EXPECT_GT(cheap.draft_passes, 2u);
  EXPECT_EQ(dear_drafts.draft_passes, 1u) << "the first level is always asked";
}

// Remembers what it was told at its first cycle, and asks for a chain of two.
class FirstTold final : public TreePolicy {
 public:
  explicit FirstTold(std::vector<CycleCosts>* told) : told_(told), inner_(make_chain_policy(2)) {}
  const char* name() const override { return "first told"; }
  std::unique_ptr<TreePolicy> clone() const override { return std::make_unique<FirstTold>(told_); }
  int32_t width() const override { return inner_->width(); }
  bool draw_order() const override { return false; }
  bool wants_costs() const override { return true; }
  void begin(const CycleLimits& limits) override { inner_->begin(limits); }
  void costs(const CycleCosts& c) override {
    told_->push_back(c);
    draft_ms = c.draft_ms(4);
  }
  bool expand(const DraftTree& tree, std::vector<int32_t>* frontier) override { return inner_->expand(tree, frontier); }
  void select(const DraftTree& tree, std::vector<int32_t>* selected) override { inner_->select(tree, selected); }
  static inline double draft_ms = 0;

 private:
  std::vector<CycleCosts>* told_;
  std::unique_ptr<TreePolicy> inner_;
};

TEST(Profile, TheFirstSessionMeasuresItsDraftersForAllOthers) {
  const std::string target = target_package();
  const auto model = open_model(target, cpu(1));
  const auto want = text_of(model, session_options(nullptr, "auto"), 60);
  for (const auto& [library, package] :
       {std::pair<const char*, std::string>{"eagle", head_package("eagle3")}, {"fasteagle", head_package("fasteagle")},
        {"medusa", head_package("medusa")}, {"hydra", head_package("hydra")}, {"dflash", head_package("dflash")}, {"small_model", target}, {"ngram", ""},
        {"lookahead", ""}}) {
    const auto drafter = open_drafter(model, library, package);
    std::vector<CycleCosts> told;
    SessionOptions o = session_options(drafter, "auto");
    o.policy = [&] { return std::make_unique<FirstTold>(&told); };
    const int64_t room = drafter->resources().pool ? drafter->resources().pool->free_positions() : 0;
    auto session = must(Session::create(model, o));
    const auto costs = quick_costs(drafter, std::chrono::milliseconds(0));  // they are there, or this would fail
    if (drafter->host_tokens()) {
      EXPECT_EQ(costs, nullptr) << library;
    } else {
      ASSERT_NE(costs, nullptr) << library;
      EXPECT_FALSE(costs->roots.empty()) << library;
      EXPECT_EQ(costs->levels.empty(), drafter->needs().levels > 1) << library;
    }
    EXPECT_EQ(drafter->costs(), nullptr) << library << ": it is no table";
    must(session->append(kProfiledText));
    StepResult r;
    while (told.empty()) must(session->step(0, std::chrono::microseconds(0), &r));
    if (costs && !costs->levels.empty()) {
      EXPECT_DOUBLE_EQ(FirstTold::draft_ms, costs->levels.ms(1, 16, 4)) << library << ": known before its first pass";
    }
    if (costs) {
      EXPECT_DOUBLE_EQ(told[0].draft_root, costs->roots.ms(1, 16, 2)) << library;
    }
    session.reset();
    if (drafter->resources().pool) {
      EXPECT_EQ(drafter->resources().pool->free_positions(), room) << library;
    }
    for (const char* tree : {"auto", "cast", "eagle2"}) {
      SessionStatistics stats;
      EXPECT_EQ(text_of(model, session_options(drafter, tree), 60, &stats), want) << library << " " << tree;
      EXPECT_EQ(stats.drafter_failures, 0u) << library;
    }
    EXPECT_EQ(quick_costs(drafter, std::chrono::milliseconds(0)), costs) << library << ": once";
  }
}

// What passes cost in one session is where the next one begins.
TEST(Profile, TheNextSessionGoesOnWithWhatPassesHaveCost) {
  const auto model = open_model(target_package(), cpu(1));
  const auto drafter = open_drafter(model, "small_model", target_package());
  auto table = made_table(*model, 10, 0.001);
  DrafterCosts d;
  d.name = "small_model";
  d.key = drafter_key(*drafter);
  const CostPoint point{1, 64, 1, 0.001, 0.001, 0.001, 1};
  d.levels = d.roots = must(CostGrid::make({point}));
  table->drafters.push_back(std::move(d));
  must(model->use_costs(table));
  must(drafter->use_costs(table));
  const auto verified = [&] {
    auto session = must(Session::create(model, session_options(drafter, "auto")));
    must(session->append(kProfiledText));
    while (session->statistics().cycles < 1) {
      StepResult r;
      must(session->step(0, std::chrono::microseconds(0), &r));
    }
    return session->statistics().verified;  // in the first cycle, before real passes have a say
  };
  EXPECT_EQ(drafter->seen_costs(), nullptr);
  EXPECT_GE(verified(), 20u) << "as the table has it";
  const auto seen = drafter->seen_costs();
  ASSERT_NE(seen, nullptr);
  EXPECT_GT(seen->root_ms, 0);
  SeenCosts dear = *seen;  // as a session would have found them on a machine whose passes over several rows are dear
  for (int i = 0; i < 60; ++i)
    for (int32_t n = 1; n <= kMaxCostRows; ++n) dear.target.measured(n, 10.0 * n);
  drafter->remember(std::make_shared<const SeenCosts>(dear));
  EXPECT_LE(verified(), 2u);
  drafter->remember(std::shared_ptr<const SeenCosts>());
  EXPECT_GE(verified(), 20u) << "nothing else was handed on";
}

// A drafter that answers all levels at once has a first pass only.
TEST(Profile, TheNextSessionGoesOnWithTheFirstPassOfAOnePassDrafter) {
  const auto model = open_model(target_package(), cpu(1));
  const auto drafter = open_drafter(model, "medusa", head_package("medusa"));
  const auto root_ms = [&] {
    std::vector<CycleCosts> told;
    SessionOptions o = session_options(drafter, "auto");
    o.policy = [&] { return std::make_unique<FirstTold>(&told); };
    auto session = must(Session::create(model, o));
    must(session->append(kProfiledText));
    StepResult r;
    while (told.empty()) must(session->step(0, std::chrono::microseconds(0), &r));
    return told[0].draft_root;
  };
  (void)root_ms();
  ASSERT_NE(drafter->seen_costs(), nullptr);
  SeenCosts seen = *drafter->seen_costs();
  seen.root_ms = 123;
  drafter->remember(std::make_shared<const SeenCosts>(seen));
  EXPECT_EQ(root_ms(), 123);
}

// One sequence is enough: it is measured with before the session takes it.
TEST(Profile, ADrafterOfOneSequence) {
  const auto model = open_model(target_package(), cpu(1));
  std::vector<std::string> log;
  DrafterOptions one;
  one.max_sequences = 1;
  one.log = [&](int32_t, const std::string& m) { log.push_back(m); };
  const auto kinds = must(load_plugin(drafter_library("small_model")));
  const auto open = [&] { return must(Drafter::open(model, kinds[0], must(Package::open(target_package())), one)); };
  const auto drafter = open(), late = open();
  const auto none = std::chrono::milliseconds(0);
  (void)must(Session::create(model, session_options(drafter, "auto")));
  EXPECT_NE(quick_costs(drafter, none), nullptr);
  EXPECT_TRUE(log.empty());
  {
    auto session = must(Session::create(model, session_options(late, "chain")));  // it asks for no costs
    PolicySpec tree;
    tree.name = "auto";
    must(session->set_tree(tree));
    ASSERT_EQ(log.size(), 1u);
    EXPECT_NE(log[0].find("all its sequences are taken"), std::string::npos) << log[0];
    must(session->append(kProfiledText));
    EXPECT_EQ(generate(*session, 20), text_of(model, session_options(nullptr, "chain"), 20));
  }
  (void)must(Session::create(model, session_options(late, "auto")));
  EXPECT_NE(quick_costs(late, none), nullptr) << "the next one measures";
}

TEST(Profile, ADrafterThatFailsInTheMeasurementIsGuessedAndTheLogIsTold) {
  const auto model = open_model(target_package(), cpu(1));
  const auto want = text_of(model, session_options(nullptr, "auto"), 40);
  const auto kinds = must(load_plugin(bad_plugin("hostile")));
  for (const std::string id : {"device_shape", "device_silent", "device_twice", "device_throw"})
    for (const PluginKind& kind : kinds) {
      if (kind.desc.id != id) continue;
      std::vector<std::string> log;
      DrafterOptions o;
      o.log = [&](int32_t, const std::string& m) { log.push_back(m); };
      const auto drafter = must(Drafter::open(model, kind, nullptr, o));
      auto session = must(Session::create(model, session_options(drafter, "auto")));
      ASSERT_EQ(log.size(), 1u) << id;
      EXPECT_EQ(log[0].find("drafter " + id + ": what its passes cost could not be measured ("), 0u) << log[0];
      EXPECT_FALSE(drafter->quarantined()) << "no strike: no step has failed";
      must(session->append(kProfiledText));
      EXPECT_EQ(generate(*session, 40), want) << id;
      (void)must(Session::create(model, session_options(drafter, "cast")));
      EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const std::string& m) { return m.find("measured") != std::string::npos; }), 1)
          << id << ": once";
    }
  // Out of time is a failure too, and an outdated deadline ends it after a pass at most.
  const auto slow = open_drafter(model, "small_model", target_package());
  EXPECT_EQ(quick_costs(slow, std::chrono::milliseconds(-1)), nullptr);
  SessionStatistics stats;
  EXPECT_EQ(text_of(model, session_options(slow, "auto"), 40, &stats), want);
  EXPECT_GT(stats.draft_passes, 0u) << "its first pass told";
}

// Weights that the first pass has to read from a disk.
constexpr auto kDisk = std::chrono::milliseconds(450);

class ColdQueue final : public WrappedQueue {
 public:
  ColdQueue(std::unique_ptr<kernels::Queue> inner, bool* cold) : WrappedQueue(std::move(inner)), cold_(cold) {}
  Result<kernels::RunState> advance(kernels::Clock::time_point deadline) override {
    if (std::exchange(*cold_, false)) std::this_thread::sleep_for(kDisk);
    return inner_->advance(deadline);
  }

 private:
  bool* cold_;
};

class ColdDevice final : public WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;
  void cool() { cold_ = true; }

 private:
  std::unique_ptr<kernels::Queue> wrap(std::unique_ptr<kernels::Queue> inner) override {
    return std::make_unique<ColdQueue>(std::move(inner), &cold_);
  }
  bool cold_ = false;
};

TEST(Profile, AFirstPassThatReadsWeightsFromTheDiskSaysNothingOfCosts) {
  const auto device = std::make_shared<ColdDevice>(cpu(1));
  const auto model = open_model(target_package(), device);
  device->cool();
  const auto costs = model->quick_costs();
  ASSERT_NE(costs, nullptr);
  EXPECT_EQ(costs->row_counts().back(), 128);
  for (const CostPoint& p : costs->points())  // of a model of some thousand weights
    EXPECT_LT(p.ms, static_cast<double>(kDisk.count())) << p.rows << " rows";
}

TEST(Profile, WithoutRoomToMeasureTheFirstPassTells) {
  ModelOptions tight;
  tight.kv_positions = 1024;
  const auto want = text_of(open_model(target_package(), cpu(1)), session_options(nullptr, "auto"), 40);
  const auto model = open_model(target_package(), cpu(1), tight);
  const auto drafter = open_drafter(model, "small_model", target_package());
  std::unique_ptr<Session> session;
  {
    KvSequence hog(model->pool(), 1024, 0);
    must(hog.reserve(model->pool()->free_positions()));
    session = must(Session::create(model, session_options(drafter, "auto")));
  }
  EXPECT_FALSE(model->quick_costs());
  must(session->append(kProfiledText));
  StepResult r;
  std::vector<int32_t> out;
  while (out.empty()) {
    must(session->step(0, std::chrono::microseconds(0), &r));
    for (const EmittedToken& t : r.tokens) out.push_back(t.id);
  }
  EXPECT_EQ(session->statistics().draft_passes, 0u) << "the first cycle is plain";
  for (const int32_t t : generate(*session, 40 - out.size())) out.push_back(t);
  EXPECT_EQ(out, want);
  EXPECT_GT(session->statistics().draft_passes, 0u) << "then it knows";
}

}  // namespace
}  // namespace aerie::test
