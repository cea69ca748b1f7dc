#include "core/text/grammar/rule_builder.h"

#include <algorithm>
#include <utility>

namespace aerie::text::grammar {

bool RuleBuilder::room_for(size_t elements) {
  if (elements > kMaxElements - std::min(elements_, kMaxElements)) too_large_ = true;
  if (!too_large_) elements_ += elements;
  return !too_large_;
}

uint32_t RuleBuilder::add_rule() {
  rules_.emplace_back();
  rules_.back().owner = owner_;
  return static_cast<uint32_t>(rules_.size() - 1);
}

uint32_t RuleBuilder::declare(std::string name) {
  names_.push_back(std::move(name));
  const uint32_t rule = add_rule();
  rules_[rule].owner = static_cast<uint32_t>(names_.size() - 1);
  return rule;
}

void RuleBuilder::define(uint32_t rule, std::vector<Sequence> alternatives) {
  size_t size = 1;
  for (const Sequence& s : alternatives) size += s.size() + 1;
  if (room_for(size)) rules_[rule].alternatives = std::move(alternatives);
}

Element RuleBuilder::choice(std::vector<Sequence> alternatives) {
  if (alternatives.size() == 1 && alternatives[0].size() == 1) return alternatives[0][0];
  if (too_large_) return element(ElementKind::rule, 0);
  const uint32_t rule = add_rule();
  define(rule, std::move(alternatives));
  return element(ElementKind::rule, rule);
}

Element RuleBuilder::set(const ByteSet& bytes) {
  const auto [at, is_new] = set_elements_.try_emplace(bytes, element(ElementKind::set, static_cast<uint32_t>(sets_.size())));
  if (is_new) sets_.push_back(bytes);
  return at->second;
}

Element RuleBuilder::code_points(CodePoints ranges) {
  ranges = normalized(std::move(ranges));
  if (const auto at = class_elements_.find(ranges); at != class_elements_.end()) return at->second;
  ByteSet single;
  std::map<std::vector<ByteRange>, ByteSet> leads;  // first bytes, by what may follow them
  std::vector<Utf8Sequence> sequences;
  for (const CodePointRange range : ranges) {
    sequences.clear();
    utf8_sequences(range, &sequences);
    for (const Utf8Sequence& s : sequences) {
      ByteSet& lead = s.length == 1 ? single : leads[{s.bytes.begin() + 1, s.bytes.begin() + s.length}];
      lead.add(s.bytes[0].low, s.bytes[0].high);
    }
  }
  std::vector<Sequence> alternatives;
  if (!single.empty() || leads.empty()) alternatives.push_back({set(single)});
  for (const auto& [tail, lead] : leads) {
    Sequence& s = alternatives.emplace_back();
    s.push_back(set(lead));
    for (const ByteRange range : tail) {
      ByteSet bytes;
      bytes.add(range.low, range.high);
      s.push_back(set(bytes));
    }
  }
  const Element made = choice(std::move(alternatives));
  class_elements_.emplace(std::move(ranges), made);
  return made;
}

void RuleBuilder::literal(std::string_view bytes, Sequence* out) {
  for (const char c : bytes) out->push_back(element(ElementKind::byte, static_cast<uint8_t>(c)));
}

Element RuleBuilder::as_one(const Sequence& item) { return item.size() == 1 ? item[0] : choice({item}); }

void RuleBuilder::repeat(const Sequence& item, uint32_t min, uint32_t max, Sequence* out) {
  if (item.empty() || max == 0) return;
  if (min == 1 && max == 1) {
    out->insert(out->end(), item.begin(), item.end());
    return;
  }
  if (min > kMaxRepetition || (max != kNoMaximum && max > kMaxRepetition)) too_large_ = true;
  if (!room_for(min)) return;
  const Element one = as_one(item);
  out->insert(out->end(), min, one);
  if (max == kNoMaximum) {
    const auto [at, is_new] = repeated_.try_emplace(one, kEnd);
    if (is_new) {
      const uint32_t rule = add_rule();
      at->second = element(ElementKind::rule, rule);
      rules_[rule].repeats = true;
      define(rule, {{one, at->second}, {}});
    }
    out->push_back(at->second);
  } else if (max > min) {
    std::vector<Element>& chain = up_to_[one];
    while (chain.size() < max - min && !too_large_) {
      Sequence more = {one};
      if (!chain.empty()) more.push_back(chain.back());
      chain.push_back(choice({std::move(more), {}}));
    }
    if (!too_large_) out->push_back(chain[max - min - 1]);
  }
}

}  // namespace aerie::text::grammar
