// Drafters without weights: suffix automaton against brute force, Lookahead's rows beside the tree.
#include <random>
#include <sstream>

#include "drafters/ngram/suffix_automaton.cc"
#include "tests/support/models.h"

namespace aerie::test {
namespace {

using ngram::SuffixAutomaton;

TEST(SuffixAutomaton, ItsMatchesAreThoseOfAScan) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto alphabet = static_cast<int32_t>(1 + random() % 4);
    std::vector<int32_t> text;
    SuffixAutomaton automaton;
    std::vector<SuffixAutomaton::Match> got;
    for (int n = 0; n < 120; ++n) {
      text.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(alphabet)));
      automaton.append(text.back());
      automaton.matches(100, &got);
      // The longest suffix with an earlier occurrence, by scanning.
      int32_t longest = 0, latest = -1;
      const auto size = static_cast<int32_t>(text.size());
      for (int32_t end = 0; end + 1 < size; ++end) {
        int32_t length = 0;
        while (length <= end && text[static_cast<size_t>(end - length)] == text[static_cast<size_t>(size - 1 - length)]) ++length;
        if (length >= longest && length > 0) {
          longest = length;
          latest = end + 1;
        }
      }
      ASSERT_EQ(got.empty(), longest == 0);
      if (got.empty()) continue;
      ASSERT_EQ(got[0].length, longest) << "text of " << size;
      ASSERT_EQ(got[0].follow, latest) << "text of " << size;
      for (size_t i = 0; i < got.size(); ++i) {  // every match is one, and they get shorter
        if (i > 0) {
          ASSERT_LT(got[i].length, got[i - 1].length);
        }
        ASSERT_LT(got[i].follow, size);
        for (int32_t k = 1; k <= got[i].length; ++k)
          ASSERT_EQ(text[static_cast<size_t>(got[i].follow - k)], text[static_cast<size_t>(size - k)]);
      }
    }
    EXPECT_EQ(automaton.size(), 120);
  }
}

class TextDrafters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    target_ = new std::string(converted(golden("mha"), "text-target", kernels::DType::int8));
  }
  static std::string* target_;
  static std::shared_ptr<Drafter> by_id(const std::shared_ptr<Model>& model, const std::string& library, const std::string& id,
                                        std::vector<std::string>* log = nullptr) {
    DrafterOptions o;
    if (log) o.log = [log](int32_t, const std::string& m) { log->push_back(m); };
    for (PluginKind& k : must(load_plugin(library)))
      if (id == k.desc.id) return must(Drafter::open(model, k, nullptr, o));
    throw std::runtime_error("no drafter " + id);
  }
  static std::string first_party(const std::string& name) { return drafter_library(name); }
  static std::vector<int32_t> text_of(const std::shared_ptr<Model>& model, std::shared_ptr<Drafter> drafter, float temperature,
                                      size_t n, SessionStatistics* stats = nullptr, PolicySpec tree = {}) {
    SessionOptions o;
    o.sampling.temperature = temperature;
    o.sampling.seed = 9;
    o.ignore_eos = true;
    o.drafter = std::move(drafter);
    if (!tree.name.empty()) o.tree = tree;
    auto session = must(Session::create(model, o));
    must(session->append(std::vector<int32_t>{26, 106, 150, 108, 115, 45, 37, 77, 26, 106, 150, 108}));
    const auto out = generate(*session, n);
    if (stats) *stats = session->statistics();
    return out;
  }
};
std::string* TextDrafters::target_;

TEST_F(TextDrafters, EveryTreeAndTemperatureGivesTheTargetsText) {
  const auto model = open_model(*target_, cpu(2));
  for (const float temperature : {0.0f, 0.7f, 1.0f}) {
    const auto want = text_of(model, nullptr, temperature, 80);
    for (const auto& [library, id] : {std::pair<const char*, const char*>{"ngram", "ngram"}, {"ngram", "ngram-suffix"}, {"lookahead", "lookahead"}})
      for (const char* tree : {"chain", "static", "eagle2", "backbone", "cast", "auto"}) {
        SessionStatistics stats;
        EXPECT_EQ(text_of(model, by_id(model, first_party(library), id), temperature, 80, &stats, {.name = tree}), want) << id << " " << tree;
        EXPECT_EQ(stats.drafter_failures, 0u) << id;
      }
  }
}

// The demo model repeats itself when greedy: what repeats is found.
TEST_F(TextDrafters, RepetitionIsAccepted) {
  const auto model = open_model(source_dir() + "/samples/models/demo.aerie", cpu(1));
  for (const auto& [library, id] : {std::pair<const char*, const char*>{"ngram", "ngram"}, {"ngram", "ngram-suffix"}, {"lookahead", "lookahead"}}) {
    SessionStatistics stats;
    text_of(model, by_id(model, first_party(library), id), 0, 200, &stats);
    EXPECT_GT(static_cast<double>(stats.emitted) / static_cast<double>(stats.cycles), 1.3) << id;
  }
}

TEST_F(TextDrafters, ARewoundTextIsReadAnew) {
  const auto model = open_model(*target_, cpu(1));
  for (const auto& [library, id] : {std::pair<const char*, const char*>{"ngram", "ngram-suffix"}, {"lookahead", "lookahead"}}) {
    SessionOptions o;
    o.ignore_eos = true;
    o.drafter = by_id(model, first_party(library), id);
    auto session = must(Session::create(model, o));
    const std::vector<int32_t> prompt = {26, 106, 150, 108, 115, 45};
    must(session->append(prompt));
    const auto want = generate(*session, 60);
    must(session->rewind(3));
    must(session->append({prompt.data() + 3, 3}));
    EXPECT_EQ(generate(*session, 60), want) << id;
  }
}

// A prompt may hold ids that can never be drawn (padded vocabulary). A drafter that repeats them is not at fault.
TEST_F(TextDrafters, TokensThatCannotBeDrawnAreDropped) {
  const auto whole = must(Package::open(*target_));
  const std::string path = scratch_dir() + "/padded.aerie";
  auto writer = must(PackageWriter::create(path));
  for (const TensorInfo& t : whole->tensors()) must(writer->add_tensor(t.name, must(whole->tensor(t.name))));
  LlamaConfig c = *whole->target();
  c.vocab_used = 120;
  writer->set_name("padded");
  writer->set_fingerprint(whole->fingerprint());
  writer->set_target(c);
  must(writer->finish());
  const auto model = open_model(path, cpu(1));
  for (const float temperature : {0.0f, 0.8f})
    for (const auto& [library, id] : {std::pair<const char*, const char*>{"ngram", "ngram"}, {"ngram", "ngram-suffix"}, {"lookahead", "lookahead"}}) {
      const auto text = [&](std::shared_ptr<Drafter> drafter, SessionStatistics* stats) {
        SessionOptions o;
        o.sampling.temperature = temperature;
        o.sampling.seed = 2;
        o.ignore_eos = true;
        o.drafter = std::move(drafter);
        auto session = must(Session::create(model, o));
        std::vector<int32_t> out;
        for (int i = 0; i < 6; ++i) {  // the program says such a phrase again and again
          must(session->append(std::vector<int32_t>{26, 106, 130, 131, 132, 26, 106, 130, 131, 132, 26, 106}));
          const auto more = generate(*session, 6);
          out.insert(out.end(), more.begin(), more.end());
        }
        *stats = session->statistics();
        return out;
      };
      SessionStatistics plain, drafted;
      const auto drafter = by_id(model, first_party(library), id);
      EXPECT_EQ(text(nullptr, &plain), text(drafter, &drafted)) << id;
      EXPECT_EQ(drafted.drafter_failures, 0u) << id;
      EXPECT_FALSE(drafter->quarantined()) << id;
    }
}

// Lookahead's table in the test's own hands.
struct BareLookahead {
  aerie_drafter d{};
  const aerie_extension_extra_rows* extra = nullptr;
  std::vector<int32_t> token, parent;

  explicit BareLookahead(const std::string& library) {
    d.struct_size = sizeof d;
    aerie_drafter_open_info info{};
    info.max_seqs = 2;
    aerie_drafter_needs needs{};
    EXPECT_EQ(must(load_plugin(library))[0].table->create(nullptr, "lookahead", &d, nullptr), AERIE_D_OK);
    EXPECT_EQ(d.open(d.self, &info, &needs, nullptr), AERIE_D_OK);
    extra = static_cast<const aerie_extension_extra_rows*>(d.get_extension(d.self, AERIE_EXTENSION_EXTRA_ROWS));
    EXPECT_EQ(d.begin(d.self, 1), AERIE_D_OK);
  }
  ~BareLookahead() { d.destroy(d.self); }
  // Paths below the root, tokens joined.
  std::vector<std::vector<int32_t>> propose(const std::vector<int32_t>& text) {
    std::vector<int32_t> t(64), p(64);
    std::vector<float> confidence(64);
    aerie_host_context c{};
    c.seq = 1;
    c.tokens = text.data();
    c.n_tokens = static_cast<int32_t>(text.size());
    c.width = 10;
    c.max_depth = 10;
    aerie_host_candidates out{sizeof out, 64, 0, 0, t.data(), p.data(), confidence.data()};
    EXPECT_EQ(d.propose_host(d.self, &c, &out), AERIE_D_OK);
    std::vector<std::vector<int32_t>> paths;
    for (int32_t i = 0; i < out.count; ++i) {
      paths.push_back(p[static_cast<size_t>(i)] < 0 ? std::vector<int32_t>{} : paths[static_cast<size_t>(p[static_cast<size_t>(i)])]);
      paths.back().push_back(t[static_cast<size_t>(i)]);
    }
    return paths;
  }
  int32_t rows() {
    token.assign(static_cast<size_t>(extra->max_rows), 0);
    parent = token;
    int32_t n = 0;
    EXPECT_EQ(extra->rows(d.self, 1, extra->max_rows, token.data(), parent.data(), &n), AERIE_D_OK);
    return n;
  }
};

// Fu et al., section 3: row (l, c) sees level 0 up to its column, then its own column; Jacobi iteration in every column
// makes n-grams that the text never had.
TEST_F(TextDrafters, LookaheadsWindowFindsWhatTheTextHasNotSaid) {
  BareLookahead look(first_party("lookahead"));
  const auto follows = [](int32_t t) { return (7 * t + 3) % 1000; };  // what the target says after a token
  std::vector<int32_t> text = {100, 200, 300, 400, 500};
  std::vector<int32_t> begun;  // first tokens of n-grams of pure iteration
  constexpr int32_t kColumns = 5, kLevels = 3;
  for (int cycle = 0; cycle < 8; ++cycle) {
    look.propose(text);
    ASSERT_EQ(look.rows(), kColumns * kLevels);
    std::vector<int32_t> choice;
    for (int32_t i = 0; i < kColumns * kLevels; ++i) {
      const int32_t l = i / kColumns, c = i % kColumns;
      EXPECT_EQ(look.parent[static_cast<size_t>(i)], l > 0 ? i - kColumns : c - 1);
      choice.push_back(follows(look.token[static_cast<size_t>(i)]));
      if (l == 0 && cycle >= kLevels) begun.push_back(look.token[static_cast<size_t>(i)]);
    }
    EXPECT_EQ(look.extra->chosen(look.d.self, 1, kColumns * kLevels, choice.data()), AERIE_D_OK);
    text.push_back(999);  // the text itself teaches nothing
  }
  ASSERT_EQ(begun.size(), 25u);
  for (const int32_t t : begun) {
    text.push_back(t);
    const auto paths = look.propose(text);
    const std::vector<int32_t> want = {follows(t), follows(follows(t)), follows(follows(follows(t)))};
    EXPECT_NE(std::find(paths.begin(), paths.end(), want), paths.end()) << "after " << t;
  }
  // A row without a choice leaves its column as it was; the others go on.
  ASSERT_EQ(look.rows(), kColumns * kLevels);
  const std::vector<int32_t> before = look.token;
  std::vector<int32_t> choice(static_cast<size_t>(kColumns * kLevels), 7);
  choice.back() = -1;
  EXPECT_EQ(look.extra->chosen(look.d.self, 1, kColumns * kLevels, choice.data()), AERIE_D_OK);
  look.rows();
  EXPECT_EQ(look.token[4], before[4]);
  EXPECT_EQ(look.token[3], before[kColumns + 3]);
  EXPECT_EQ(look.token[2 * kColumns + 3], 7);
  // A sequence that begins again knows nothing of the one before.
  EXPECT_EQ(look.d.begin(look.d.self, 1), AERIE_D_OK);
  EXPECT_TRUE(look.propose({begun[0]}).empty());
  look.d.end(look.d.self, 1);
}

// Rows beside the tree: what the drafter is told must be what the target says after the same path in a text.
TEST_F(TextDrafters, ExtraRowsBringTheTargetsOwnChoice) {
  const auto model = open_model(*target_, cpu(1));
  const std::string library = bad_plugin("extra_rows");
  for (const float temperature : {0.0f, 0.8f}) {
    std::vector<std::string> log;
    const auto want = text_of(model, nullptr, temperature, 12);
    EXPECT_EQ(text_of(model, by_id(model, library, "extra", &log), temperature, 12), want);
    // The plugin logs "TOKENS -> CHOICE" for each row: its path below the root, with the whole text before it.
    ASSERT_GT(log.size(), 12u);
    size_t compared = 0;
    for (const std::string& line : log) {
      const size_t arrow = line.find("->"), colon = line.find(": ");
      ASSERT_NE(arrow, std::string::npos) << line;
      std::istringstream in(line.substr(colon + 2, arrow - colon - 2));
      std::vector<int32_t> text;
      for (int32_t t; in >> t;) text.push_back(t);
      SessionOptions o;
      o.sampling.temperature = temperature;
      o.sampling.seed = 9;
      o.ignore_eos = true;
      auto session = must(Session::create(model, o));
      must(session->append(text));
      EXPECT_EQ(generate(*session, 1)[0], std::stoi(line.substr(arrow + 2))) << line;
      ++compared;
    }
    EXPECT_GE(compared, 24u);
  }
}

TEST_F(TextDrafters, ExtraRowsThatLieCostNoToken) {
  const auto model = open_model(*target_, cpu(1));
  const std::string library = bad_plugin("extra_rows");
  const auto want = text_of(model, nullptr, 0.8f, 30);
  for (const char* id : {"extra_count", "extra_parent", "extra_token", "extra_fails", "extra_throws", "extra_chosen_fails"}) {
    const auto drafter = by_id(model, library, id);
    SessionStatistics stats;
    EXPECT_EQ(text_of(model, drafter, 0.8f, 30, &stats), want) << id;
    EXPECT_TRUE(drafter->quarantined()) << id;
    EXPECT_EQ(stats.drafter_failures, 3u) << id;
  }
  DrafterOptions o;
  for (PluginKind& k : must(load_plugin(library)))
    if (std::string(k.desc.id) == "extra_bad_table") {
      EXPECT_NE(Drafter::open(model, k, nullptr, o).status().message().find("aerie.extra_rows/1"), std::string::npos);
    }
}

}  // namespace
}  // namespace aerie::test
