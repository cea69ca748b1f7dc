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
        if (i > 0) ASSERT_LT(got[i].length, got[i - 1].length);
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
  static std::string first_party(const std::string& name) { return std::string(AERIE_BINARY_DIR) + "/lib/aerie/drafters/" + name + ".so"; }
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
      for (const char* tree : {"chain", "static", "eagle2", "backbone"}) {
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

// Rows beside the tree: what the drafter is told must be what the target says after the same path in a text.
TEST_F(TextDrafters, ExtraRowsBringTheTargetsOwnChoice) {
  const auto model = open_model(*target_, cpu(1));
  const std::string library = std::string(AERIE_BINARY_DIR) + "/lib/test-plugins/extra_rows.so";
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
  const std::string library = std::string(AERIE_BINARY_DIR) + "/lib/test-plugins/extra_rows.so";
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
    if (std::string(k.desc.id) == "extra_bad_table")
      EXPECT_NE(Drafter::open(model, k, nullptr, o).status().message().find("aerie.extra_rows/1"), std::string::npos);
}

}  // namespace
}  // namespace aerie::test
