// LogitRules: what is done to the target's logits before a token is drawn from them: biases, then penalties, then a constraint.
// A function of the text alone, so that a drafter changes nothing. A walk that they take part in runs on the host.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/sampling/constraint.h"
#include "core/sampling/penalties.h"

namespace aerie {

struct LogitBias {
  int32_t token;
  float bias;  // -inf: never
};

struct LogitOptions {
  std::vector<LogitBias> biases;
  PenaltyOptions penalties;
};

class LogitRules {
 public:
  LogitRules(int32_t vocab, int32_t vocab_used);

  void set(const LogitOptions& options);
  bool active() const { return !biases_.empty() || penalties_.any() || constraint_; }
  // A text that is `size` tokens long goes on under it. Code::mismatch: nothing may come to begin with. Null: none.
  Status constrain(std::shared_ptr<const Constraint> constraint, size_t size);
  Status take_over(const LogitRules& other);  // of a session with the same text
  void begin_at(size_t size);                 // the constraint, anew
  void rewound(size_t size);

  // Where the text ends: to be called before what follows, if it may have changed.
  Status sync(std::span<const int32_t> text);
  bool constrained() const { return constraint_ != nullptr; }
  Status any_allowed(bool* any) { return ask_for_any(&end_, any); }  // to come next

  // Which of `tokens`, drafted behind `path`, which follows the text, may come: the first `most` of them.
  Status find_allowed(std::span<const int32_t> path, std::span<const int32_t> tokens, size_t most, std::vector<size_t>* out) const;

  // Looks at what may come behind the text, ahead of a walk. A failure on the way is an answer like "no": a walk that comes by it
  // meets it again, and tells it then.
  class Scout {
   public:
    // It comes next. False: it may not, or nobody can say; the scout stays where it was, or has no way on.
    bool take(int32_t token);
    // What the constraint forces, up to `most` tokens that may be drawn.
    void find_forced(size_t most, std::vector<int32_t>* out);

   private:
    friend class LogitRules;
    Scout(const LogitRules* rules, std::unique_ptr<ConstraintState> state) : rules_(rules), state_(std::move(state)) {}
    const LogitRules* rules_;
    std::unique_ptr<ConstraintState> state_;  // null: no way on
  };
  Scout scout() const;

  // A walk from the text's end.
  Status begin_walk(std::span<const int32_t> text, size_t generated_from);
  Status push(int32_t token);
  // Logits where the walk stands, of ids below vocab_used: good until the next call.
  Result<std::span<const float>> apply(std::span<const float> logits);
  // Where the walk stands, of which it has been asked what may come: a constraint leaves it little choice.
  bool few_allowed() const;
  Status any_allowed_behind(bool* any) { return ask_for_any(&walk_, any); }  // the walk
  void commit(size_t size) noexcept;          // what was walked through, all of it: the text is as long now

 private:
  // A state, and what it allows once that was asked.
  struct Place {
    std::unique_ptr<ConstraintState> state;
    std::vector<uint32_t> mask;
    bool known = false;
  };
  Status ask(Place* place) const;
  Status ask_for_any(Place* place, bool* any) const;
  static bool allows(const Place& place, int32_t token) {  // once it has been asked
    const auto t = static_cast<size_t>(token);
    return (place.mask[t / 32] >> (t % 32) & 1) != 0;
  }
  bool banned(int32_t token) const { return !banned_.empty() && banned_[static_cast<size_t>(token)]; }

  int32_t vocab_;
  size_t used_;
  std::vector<LogitBias> biases_;
  std::vector<char> banned_;  // by a bias; empty: none is
  Penalties penalties_;
  std::shared_ptr<const Constraint> constraint_;
  size_t from_ = 0;       // the constraint's first token
  size_t at_ = 0;         // end_ is behind so many tokens
  Place end_, walk_;      // no state: not there yet
  std::vector<float> logits_;
};

}  // namespace aerie
