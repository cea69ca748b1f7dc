// Constraint: what may come next in a text, decided by somebody else: a grammar, a host's matcher (aerie_constraint in aerie.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/status.h"

namespace aerie {

// Behind some tokens. One thread at a time; of different states, any.
class ConstraintState {
 public:
  virtual ~ConstraintState() = default;
  virtual Result<std::unique_ptr<ConstraintState>> copy() const = 0;
  // Bit t % 32 of mask[t / 32], all 0 before: token t may come next.
  virtual Status allowed(std::span<uint32_t> mask) = 0;
  // It came next. Code::mismatch: it may not; the state is only destroyed then.
  virtual Status accept(int32_t token) = 0;
  // Tokens that very likely come next, since nothing else can be said: up to `most`, to *tokens, which is empty before.
  virtual Status forced(size_t /*most*/, std::vector<int32_t>* /*tokens*/) { return {}; }
};

class Constraint {
 public:
  virtual ~Constraint() = default;
  virtual Result<std::unique_ptr<ConstraintState>> begin() const = 0;  // before the first token
};

}  // namespace aerie
