#include "core/text/grammar/rule_checks.h"

namespace aerie::text::grammar {
namespace {

// The rules with an alternative whose rules all are, and whose bytes, if any, `may_have_bytes`: the least such set.
std::vector<bool> least_set(const Rules& rules, const std::vector<ByteSet>& sets, bool may_have_bytes) {
  struct Use {
    uint32_t rule;
    uint32_t missing;  // its rules that are not in yet
  };
  std::vector<Use> uses;                             // one for each alternative that is still possible
  std::vector<std::vector<uint32_t>> of(rules.size());  // alternatives in which the rule is, as often as it is there
  std::vector<bool> in(rules.size());
  std::vector<uint32_t> news;
  const auto add = [&](uint32_t rule) {
    if (in[rule]) return;
    in[rule] = true;
    news.push_back(rule);
  };
  for (uint32_t r = 0; r < rules.size(); ++r) {
    for (const Sequence& alternative : rules[r].alternatives) {
      bool possible = true;
      for (const Element e : alternative) {
        const ElementKind kind = kind_of(e);
        if (kind != ElementKind::rule) possible &= may_have_bytes && !(kind == ElementKind::set && sets[value_of(e)].empty());
      }
      if (!possible) continue;
      Use use{r, 0};
      for (const Element e : alternative) {
        if (kind_of(e) != ElementKind::rule) continue;
        ++use.missing;
        of[value_of(e)].push_back(static_cast<uint32_t>(uses.size()));
      }
      if (use.missing == 0) add(r);
      uses.push_back(use);
    }
  }
  while (!news.empty()) {
    const uint32_t rule = news.back();
    news.pop_back();
    for (const uint32_t use : of[rule])
      if (--uses[use].missing == 0) add(uses[use].rule);
  }
  return in;
}

}  // namespace

std::vector<bool> ending_rules(const Rules& rules, const std::vector<ByteSet>& sets) { return least_set(rules, sets, true); }
std::vector<bool> nullable_rules(const Rules& rules, const std::vector<ByteSet>& sets) { return least_set(rules, sets, false); }

int64_t left_recursive_rule(const Rules& rules, const std::vector<bool>& nullable) {
  enum : uint8_t { fresh, open, done };
  struct Frame {
    uint32_t rule;
    size_t alternative = 0, at = 0;
  };
  std::vector<uint8_t> state(rules.size(), fresh);
  std::vector<Frame> path;  // no recursion: a grammar's rules may be as deep as they are many
  for (uint32_t first = 0; first < rules.size(); ++first) {
    if (state[first] != fresh) continue;
    state[first] = open;
    path.push_back({first});
    while (!path.empty()) {
      Frame& f = path.back();
      const auto& alternatives = rules[f.rule].alternatives;
      if (f.alternative == alternatives.size()) {
        state[f.rule] = done;
        path.pop_back();
        continue;
      }
      const Sequence& s = alternatives[f.alternative];
      if (f.at == s.size() || kind_of(s[f.at]) != ElementKind::rule) {
        ++f.alternative;
        f.at = 0;
        continue;
      }
      const uint32_t next = value_of(s[f.at]);
      if (nullable[next]) ++f.at;
      else ++f.alternative, f.at = 0;
      // x*, where x may be empty, comes to itself with nothing new to return to: a matcher sees that it was there.
      if (next == f.rule && rules[next].repeats) continue;
      if (state[next] == open) return next;
      if (state[next] == fresh) {
        state[next] = open;
        path.push_back({next});
      }
    }
  }
  return -1;
}

}  // namespace aerie::text::grammar
