#include "core/sampling/logit_rules.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace aerie {

namespace {

Status accepted(ConstraintState& state, int32_t token) {
  const Status s = state.accept(token);
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
  LogitRules next(vocab_, static_cast<int32_t>(used_));
  next.constraint_ = std::move(constraint);
  next.begin_at(size);
  if (next.constraint_) {
    AERIE_ASSIGN(next.end_.state, next.constraint_->begin());
    bool any = false;
    AERIE_TRY(next.any_allowed(&any));
    if (!any) return error(Code::mismatch, "constraint: it allows no token of the model to begin with");
  }
  constraint_ = std::move(next.constraint_);
  end_ = std::move(next.end_);
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
    end.any = other.end_.any;
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

Status LogitRules::ask(Place* place) {
  if (place->known) return {};
  place->mask.assign((static_cast<size_t>(vocab_) + 31) / 32, 0);
  AERIE_TRY(place->state->allowed(place->mask).at("constraint"));
  place->any = false;
  for (size_t t = 0; t < used_ && !place->any; ++t)
    place->any = (place->mask[t / 32] >> (t % 32) & 1) != 0 && !banned(static_cast<int32_t>(t));
  place->known = true;
  return {};
}

Status LogitRules::any_allowed(bool* any) {
  AERIE_TRY(ask(&end_));
  *any = end_.any;
  return {};
}

Status LogitRules::any_allowed_behind(bool* any) {
  AERIE_TRY(ask(&walk_));
  *any = walk_.any;
  return {};
}

void LogitRules::drop_forbidden(std::span<const int32_t> path, std::span<int32_t> tokens) const {
  for (int32_t& t : tokens)
    if (t >= 0 && banned(t)) t = -1;
  if (!constraint_) return;
  const auto behind = end_.state->copy();
  if (!behind.ok()) return;
  for (const int32_t t : path)
    if (!(*behind)->accept(t).ok()) return;
  for (int32_t& t : tokens) {
    if (t < 0) continue;
    const auto trial = (*behind)->copy();
    if (trial.ok() && (*trial)->accept(t).code() == Code::mismatch) t = -1;
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
  walk_.any = end_.any;
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
      if ((walk_.mask[t / 32] >> (t % 32) & 1) == 0) x[t] = -INFINITY;
  }
  return std::span<const float>(x);
}

void LogitRules::commit(size_t size) noexcept {
  if (!constraint_) return;
  std::swap(end_, walk_);
  walk_.state.reset();
  at_ = size;
}

}  // namespace aerie
