// From rules to a program.
#include <algorithm>

#include "core/text/grammar/rule_checks.h"
#include "core/text/grammar/token_trie.h"

namespace aerie::text::grammar {
namespace {

// The rules that texts of the start can come to, in order, and their elements in a row.
class ProgramWriter {
 public:
  ProgramWriter(const Rules& rules, const std::vector<bool>& ending)
      : rules_(rules), ending_(ending), number_(rules.size(), kNone) {}

  void write(uint32_t root, Program* out) {
    number_of(root);
    for (size_t i = 0; i < order_.size(); ++i) {
      out->rules.push_back(static_cast<uint32_t>(out->alternatives.size()));
      for (const Sequence& s : rules_[order_[i]].alternatives) {
        if (!ends(s)) continue;  // a text that went there could not be completed
        out->alternatives.push_back(static_cast<uint32_t>(out->elements.size()));
        for (const Element e : s)
          out->elements.push_back(kind_of(e) == ElementKind::rule ? element(ElementKind::rule, number_of(value_of(e))) : e);
        out->elements.push_back(kEnd);
      }
    }
    out->rules.push_back(static_cast<uint32_t>(out->alternatives.size()));
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  bool ends(const Sequence& s) const {
    return std::all_of(s.begin(), s.end(), [&](Element e) { return kind_of(e) != ElementKind::rule || ending_[value_of(e)]; });
  }
  uint32_t number_of(uint32_t rule) {
    if (number_[rule] == kNone) {
      number_[rule] = static_cast<uint32_t>(order_.size());
      order_.push_back(rule);
    }
    return number_[rule];
  }

  const Rules& rules_;
  const std::vector<bool>& ending_;
  std::vector<uint32_t> number_, order_;
};

void find_byte_classes(Program* p) {
  ByteSet single;  // bytes that stand alone somewhere are told apart from all others
  std::vector<bool> used(p->sets.size());
  for (const Element e : p->elements) {
    if (kind_of(e) == ElementKind::byte) single.add(value_of(e), value_of(e));
    if (kind_of(e) == ElementKind::set) used[value_of(e)] = true;
  }
  int n = 1;
  std::array<int, 256> of{};
  const auto split = [&](const ByteSet& set) {
    std::array<int, 256> moved;  // where the bytes of a class go that are in the set
    moved.fill(-1);
    std::array<bool, 256> stays{};
    for (int b = 0; b < 256; ++b) stays[of[b]] |= !set.has(static_cast<uint8_t>(b));
    for (int b = 0; b < 256; ++b) {
      if (!set.has(static_cast<uint8_t>(b)) || !stays[of[b]]) continue;
      if (moved[of[b]] < 0) moved[of[b]] = n++;
      of[b] = moved[of[b]];
    }
  };
  for (size_t i = 0; i < p->sets.size() && n < 256; ++i)
    if (used[i]) split(p->sets[i]);
  for (uint32_t b = 0; b < 256; ++b) {
    if (!single.has(static_cast<uint8_t>(b))) continue;
    ByteSet one;
    one.add(b, b);
    split(one);
  }
  p->class_example.resize(static_cast<size_t>(n));
  for (int b = 0; b < 256; ++b) {
    p->class_of[b] = static_cast<uint8_t>(of[b]);
    p->class_example[of[b]] = static_cast<uint8_t>(b);
  }
  std::array<bool, 256> seen{};
  for (int b = 0; b < 256; ++b) {
    if (!is_plain(static_cast<uint8_t>(b)) || seen[of[b]]) continue;
    seen[of[b]] = true;
    p->plain_examples.push_back(static_cast<uint8_t>(b));
  }
}

}  // namespace

Status RuleBuilder::size_status(const std::string& place) const {
  if (!too_large_) return {};
  return error(Code::limit, place + " it grows too large: above " + std::to_string(kMaxElements) +
                                " elements, or a repetition above " + std::to_string(kMaxRepetition));
}

std::string RuleBuilder::place(size_t rule) const {
  const std::string& name = names_[rules_[rule].owner];
  return notation_ == "schema" ? "schema: " + name + ":" : "grammar: rule \"" + name + "\"";
}

Result<Program> RuleBuilder::compile(uint32_t root, bool all_must_end) const {
  AERIE_TRY(size_status());
  const std::vector<bool> nullable = nullable_rules(rules_, sets_);
  if (const int64_t rule = left_recursive_rule(rules_, nullable); rule >= 0) {
    return error(Code::unsupported, place(static_cast<size_t>(rule)) + " is left-recursive: it may begin with itself");
  }
  const std::vector<bool> ending = ending_rules(rules_, sets_);
  for (size_t r = 0, named = 0; r < rules_.size(); ++r) {
    const bool is_named = rules_[r].owner == named;  // the first rule of an owner
    named += is_named;
    if (!ending[r] && (r == root || (all_must_end && is_named)))
      return error(Code::bad_format, place(r) + " has no text that ever ends");
  }
  Program program;
  program.sets = sets_;
  ProgramWriter(rules_, ending).write(root, &program);
  find_byte_classes(&program);
  return program;
}

}  // namespace aerie::text::grammar
