// What a host hands in is its own again when the call returns: texts, option structs, lists and what they point at.
#include <cstring>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

// Memory that is lent to one call, then overwritten and freed.
class Loans {
 public:
  ~Loans() { take_back(); }
  template <class T>
  T* list(const std::vector<T>& values) {
    blocks_.emplace_back(values.size() * sizeof(T));
    std::memcpy(blocks_.back().data(), values.data(), blocks_.back().size());
    return reinterpret_cast<T*>(blocks_.back().data());
  }
  template <class T>
  T* one(const T& value) {
    return list(std::vector<T>{value});
  }
  const char* text(const std::string& s) { return list(std::vector<char>(s.c_str(), s.c_str() + s.size() + 1)); }
  void take_back() {
    for (auto& block : blocks_)
      for (volatile unsigned char& byte : block) byte = 0xAB;  // no path, number or address of anybody's
    blocks_.clear();
  }
  // f(*this), and the loans are over.
  template <class F>
  int32_t during(F&& f) {
    const int32_t code = f(*this);
    take_back();
    return code;
  }

 private:
  std::vector<std::vector<unsigned char>> blocks_;
};

struct Lender : Host {
  Loans loans;
  aerie_drafter_handle* second = nullptr;
  ~Lender() { aerie_drafter_release(second); }

  int32_t open_all() {
    const auto during = [&](auto&& f) { return loans.during(f); };
    if (const int32_t c = during([&](Loans& l) {
          aerie_runtime_options o = with_threads(1);
          o.device = l.text("cpu");
          return aerie_runtime_create(l.one(o), &runtime, &err);
        }))
      return c;
    if (const int32_t c = during([&](Loans& l) { return aerie_runtime_load_plugin_directory(runtime, l.text(plugin_directory()), &err); }))
      return c;
    if (const int32_t c = during([&](Loans& l) {
          aerie_model_options o;
          AERIE_INIT(o);
          o.kv_positions = 2048;
          return aerie_model_open(runtime, l.text(demo_model()), l.one(o), &model, &err);
        }))
      return c;
    for (aerie_drafter_handle** d : {&drafter, &second})
      if (const int32_t c = during([&](Loans& l) {
            aerie_drafter_options o;
            AERIE_INIT(o);
            if (d == &drafter) o.package = l.text(demo_head());
            o.plugin = l.text(d == &drafter ? "eagle" : "ngram");
            return aerie_drafter_open(model, l.one(o), d, &err);
          }))
        return c;
    return AERIE_OK;
  }
  static aerie_sampling sampling() { return Settings().sampling; }
  static aerie_tree_options three_nodes(Loans& l) {
    aerie_tree_options t;
    AERIE_INIT(t);
    t.policy = AERIE_TREE_STATIC;
    t.n_paths = 3;
    t.paths = l.list<int32_t>({0, -1, 1, -1, 0, 0, -1});
    return t;
  }
  int32_t append(const std::vector<int32_t>& tokens) {
    return loans.during([&](Loans& l) { return aerie_session_append(session, l.list(tokens), tokens.size(), &err); });
  }
  // Three whole cycles, and how many nodes the last of them verified.
  int32_t nodes_of_a_cycle(std::vector<int32_t>* out) {
    for (int i = 0; i < 3; ++i) {
      aerie_step_result r;
      AERIE_INIT(r);
      EXPECT_EQ(aerie_session_step(session, nullptr, &r, &err), AERIE_OK) << err.message;
      for (int32_t k = 0; k < r.n_tokens; ++k) out->push_back(r.tokens[k].id);
    }
    aerie_statistics s;
    AERIE_INIT(s);
    EXPECT_EQ(aerie_session_statistics(session, &s, &err), AERIE_OK) << err.message;
    return s.chosen_nodes;
  }
};

// The first token of plain decode that has not come before, from `from` on; and the text up to it.
std::vector<int32_t> text_to_a_new_token(size_t from) {
  const auto& all = plain_text();
  for (auto at = all.begin() + static_cast<std::ptrdiff_t>(from); at != all.end(); ++at)
    if (std::find(all.begin(), at, *at) == at) return {all.begin(), at + 1};
  return {};
}

TEST(Inputs, OfASessionsOptionsAreTheHostsAgain) {
  Lender host;
  ASSERT_EQ(host.open_all(), AERIE_OK) << host.err.message;
  const std::vector<int32_t> want = text_to_a_new_token(12);
  ASSERT_FALSE(want.empty());
  ASSERT_EQ(host.loans.during([&](Loans& l) {
    aerie_session_options o;
    AERIE_INIT(o);
    o.sampling = l.one(Lender::sampling());
    o.tree = l.one(Lender::three_nodes(l));
    o.ignore_eos = 1;
    o.n_stop_tokens = 2;
    o.stop_tokens = l.list<int32_t>({want.back(), want.back()});
    o.drafter = host.drafter;
    o.n_more_drafters = 1;
    o.more_drafters = l.list<aerie_drafter_handle*>({host.second});
    return aerie_session_create(host.model, l.one(o), &host.session, &host.err);
  }), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.append(kPrompt), AERIE_OK);
  std::vector<int32_t> out;
  EXPECT_EQ(host.nodes_of_a_cycle(&out), 3);
  ASSERT_EQ(host.more(100, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, want) << "it ends with the stop token";
}

TEST(Inputs, OfSettersAreTheHostsAgain) {
  Lender host;
  Numbers numbers;
  ASSERT_EQ(host.open_all(), AERIE_OK) << host.err.message;
  const std::vector<int32_t> want = text_to_a_new_token(12);
  aerie_session_options o;
  AERIE_INIT(o);
  o.ignore_eos = 1;
  o.drafter = host.drafter;
  ASSERT_EQ(aerie_session_create(host.model, &o, &host.session, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.loans.during([&](Loans& l) { return aerie_session_set_sampling(host.session, l.one(Lender::sampling()), &host.err); }), AERIE_OK);
  ASSERT_EQ(host.loans.during([&](Loans& l) { return aerie_session_set_tree(host.session, l.one(Lender::three_nodes(l)), &host.err); }), AERIE_OK);
  ASSERT_EQ(host.loans.during([&](Loans& l) {
    const std::vector<const char*> stops = {l.text("never"), l.text("," + numbers.words[static_cast<size_t>(want.back())])};
    return aerie_session_set_stop_strings(host.session, l.list(stops), 2, l.one(numbers.source()), &host.err);
  }), AERIE_OK) << host.err.message;
  ASSERT_EQ(host.append(kPrompt), AERIE_OK);
  std::vector<int32_t> out;
  EXPECT_EQ(host.nodes_of_a_cycle(&out), 3);
  ASSERT_EQ(host.more(100, &out), AERIE_OK) << host.err.message;
  EXPECT_EQ(out, want) << "it ends with the stop string";
}

}  // namespace
}  // namespace aerie_capi_test
