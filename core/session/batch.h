// Batch: sessions of one model that are stepped together. They join and leave between steps; one that reads its
// prompt goes chunk by chunk beside others that draft and verify. Each one's text is what it would be alone.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "core/session/session.h"

namespace aerie {

struct BatchOptions {
  int32_t max_rows = 0;  // rows of a target pass, where trees and prompts can be cut to fit; 0: no limit
};

// One thread at a time, except request_cancel and clear_cancel; what is done to a member counts as done to the batch.
class Batch {
 public:
  static Result<std::unique_ptr<Batch>> create(std::shared_ptr<Model> model, const BatchOptions& options = {});
  ~Batch();  // its members go on alone
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Borrowed until remove() or the end of either. A cycle that the session has begun is given up.
  Status add(Session& session);
  // The cycle it is in is given up, for this session only.
  Status remove(Session& session);
  std::span<Session* const> sessions() const { return sessions_; }

  // One cycle of those that are ready, and a part of what the others have to do: until one of them has tokens, has
  // ended or is cancelled, or the budget (zero: none) is spent. Session::status() and result() say what came of it; a
  // session that fails does not stop the others. max_tokens: most that each may emit; 0: whatever a cycle gives.
  Status step(int32_t max_tokens, std::chrono::microseconds budget);
  void request_cancel() { cancel_.store(true, std::memory_order_relaxed); }  // [any thread]
  void clear_cancel() { cancel_.store(false, std::memory_order_relaxed); }   // [any thread]

 private:
  friend class Session;
  explicit Batch(std::shared_ptr<Model> model) : model_(std::move(model)) {}
  void forget(Session& session) noexcept;  // a member

  std::shared_ptr<Model> model_;
  std::unique_ptr<Stepper> stepper_;
  std::vector<Session*> sessions_;
  std::atomic<bool> cancel_{false};
};

}  // namespace aerie
