#include "core/sampling/logit_rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <new>
#include <utility>

namespace aerie {

namespace {

// What a host's own function throws is an answer like another: behind which token it comes must not depend on a draft.
template <class F>
Status answer_of(const char* function, F&& ask) {
  try {
    return ask();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& e) {
    return a_hook_threw(function, e.what());
  } catch (...) {
    return a_hook_threw(function, "no std::exception");
  }
}

Status accepted(ConstraintState& state, int32_t token) {
  const Status s = answer_of("accept", [&] { return state.accept(token); });
  return s.ok() ? s : s.at("constraint: token " + std::to_string(token) + ", which it allowed");
}

}  // namespace

LogitRules::LogitRules(int32_t vocab, int32_t vocab_used)
    : vocab_(vocab), used_(static_cast<size_t>(std::min(vocab, vocab_used))) {}

void LogitRules::set(const LogitOptions& options) {
  std::vector<LogitBias> biases = options.biases;
  std::vector<char> banned;
  for (const LogitBias& b : biases) {
    if (b.bias > -INFINITY) continue;
    banned.resize(static_cast<size_t>(vocab_));
    banned[static_cast<size_t>(b.token)] = 1;
  }
  biases_.swap(biases);
  banned_.swap(banned);
  penalties_.set(options.penalties);
}

Status LogitRules::constrain(std::shared_ptr<const Constraint> constraint, size_t size) {
  Place begin;
  if (constraint) {
    AERIE_ASSIGN(begin.state, constraint->begin());
    bool any = false;
    AERIE_TRY(ask_for_any(&begin, &any));
    if (!any) return error(Code::mismatch, "constraint: no token of the model may come to begin with");
  }
  constraint_ = std::move(constraint);
  end_ = std::move(begin);
  walk_ = {};
  from_ = at_ = size;
  return {};
}

Status LogitRules::take_over(const LogitRules& other) {
  Place end;
  if (other.end_.state) {
    AERIE_ASSIGN(end.state, other.end_.state->copy());
    end.mask = other.end_.mask;
    end.known = other.end_.known;
  }
  constraint_ = other.constraint_;
  from_ = other.from_;
  at_ = other.at_;
  end_ = std::move(end);
  return {};
}

void LogitRules::begin_at(size_t size) {
  from_ = at_ = size;
  end_ = {};
}

void LogitRules::rewound(size_t size) {
  from_ = std::min(from_, size);
  if (at_ > size) end_ = {};
}

Status LogitRules::sync(std::span<const int32_t> text) {
  if (!constraint_ || (end_.state && at_ == text.size())) return {};
  Place place = std::exchange(end_, {});  // a state that fails on the way is in doubt
  if (!place.state) {
    AERIE_ASSIGN(place.state, constraint_->begin());
    at_ = from_;
  }
  place.known = false;
  for (; at_ < text.size(); ++at_) AERIE_TRY(accepted(*place.state, text[at_]));
  end_ = std::move(place);
  return {};
}

Status LogitRules::ask(Place* place) const {
  if (place->known) return {};
  place->mask.assign((static_cast<size_t>(vocab_) + 31) / 32, 0);
  AERIE_TRY(answer_of("allowed", [&] { return place->state->allowed(place->mask); }).at("constraint"));
  place->known = true;
  return {};
}

// Biases may have changed since the mask was made.
Status LogitRules::ask_for_any(Place* place, bool* any) const {
  AERIE_TRY(ask(place));
  *any = false;
  for (size_t t = 0; t < used_ && !*any; ++t)
    *any = allows(*place, static_cast<int32_t>(t)) && !banned(static_cast<int32_t>(t));
  return {};
}

Status LogitRules::find_allowed(std::span<const int32_t> path, std::span<const int32_t> tokens, size_t most, std::vector<size_t>* out) const {
  const bool by_mask = path.empty() && end_.known;
  std::unique_ptr<ConstraintState> behind;
  if (constraint_ && !by_mask) {
    AERIE_ASSIGN(behind, end_.state->copy());
    for (const int32_t t : path) AERIE_TRY(accepted(*behind, t));
  }
  out->clear();
  for (size_t i = 0; i < tokens.size() && out->size() < most; ++i) {
    const int32_t t = tokens[i];
    if (t < 0 || banned(t) || (constraint_ && by_mask && !allows(end_, t))) continue;
    if (behind) {
      AERIE_ASSIGN(const auto trial, behind->copy());
      if (!answer_of("accept", [&] { return trial->accept(t); }).ok()) continue;
    }
    out->push_back(i);
  }
  return {};
}

LogitRules::Scout LogitRules::scout() const {
  try {
    if (end_.state)
      if (auto copy = end_.state->copy(); copy.ok()) return {this, std::move(*copy)};
  } catch (...) {  // the host's, or no memory
  }
  return {this, nullptr};
}

bool LogitRules::Scout::take(int32_t token) {
  if (!state_ || token < 0 || static_cast<size_t>(token) >= rules_->used_ || rules_->banned(token)) return false;
  try {
    auto behind = state_->copy();
    if (!behind.ok() || !(*behind)->accept(token).ok()) return false;
    state_ = std::move(*behind);
    return true;
  } catch (...) {
    return false;
  }
}

void LogitRules::Scout::find_forced(size_t most, std::vector<int32_t>* out) {
  out->clear();
  if (!state_) return;
  try {
    if (!state_->forced(most, out).ok()) out->clear();
  } catch (...) {
    out->clear();
  }
}

Status LogitRules::begin_walk(std::span<const int32_t> text, size_t generated_from) {
  if (penalties_.any()) penalties_.begin(text, generated_from, vocab_);
  if (!constraint_) return {};
  AERIE_TRY(sync(text));
  AERIE_TRY(ask(&end_));
  walk_ = {};
  AERIE_ASSIGN(walk_.state, end_.state->copy());
  walk_.mask = end_.mask;
  walk_.known = true;
  return {};
}

Status LogitRules::push(int32_t token) {
  if (penalties_.any()) penalties_.push(token);
  if (!constraint_) return {};
  walk_.known = false;
  return accepted(*walk_.state, token);
}

Result<std::span<const float>> LogitRules::apply(std::span<const float> logits) {
  logits_.assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(std::min(used_, logits.size())));
  const std::span<float> x(logits_);
  for (const LogitBias& b : biases_)
    if (static_cast<size_t>(b.token) < x.size()) x[static_cast<size_t>(b.token)] += b.bias;
  if (penalties_.any()) penalties_.apply(x);
  if (constraint_) {
    AERIE_TRY(ask(&walk_));
    for (size_t t = 0; t < x.size(); ++t)
      if (!allows(walk_, static_cast<int32_t>(t))) x[t] = -INFINITY;
  }
  return std::span<const float>(x);
}

// In a text of a form a name, a comma or a bracket, and not what somebody writes.
bool LogitRules::few_allowed() const {
  if (!constraint_ || !walk_.known) return false;
  size_t n = 0;
  for (const uint32_t word : walk_.mask) n += static_cast<size_t>(std::popcount(word));
  return n <= used_ / 16;
}

void LogitRules::commit(size_t size) noexcept {
  if (!constraint_) return;
  std::swap(end_, walk_);
  walk_.state.reset();
  at_ = size;
}

}  // namespace aerie
