// DraftCalls: what one pass asks of drafters, one call for all sessions that can share it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/drafter/draft_call.h"

namespace aerie {

class Session;

// Sessions share a call when all of this is equal.
struct DraftRequest {
  Drafter* drafter = nullptr;
  int32_t level = -1;  // of the nodes whose children are wanted; -1: the drafter is only shown something
  int32_t width = 0;
  bool want_logits = false;
  bool on_device = false;  // for a tree that the device draws: the candidates stay there
  bool operator==(const DraftRequest&) const = default;
};

struct DraftCall {
  DraftRequest request;
  ObserveCall observe;
  ProposeCall propose;
  std::vector<Session*> sessions;
  // What it observes is in doubt when `observed` is false after a failure.
  Status record(Plan& plan, bool* observed);
};

class DraftCalls {
 public:
  void clear() { n_ = 0; }
  // A call that so many more rows fit in, the session in its list.
  DraftCall& join(const DraftRequest& request, Session* session, int64_t observed, int64_t proposed);
  // A new one.
  DraftCall& add(const DraftRequest& request, Session* session);
  std::span<const std::unique_ptr<DraftCall>> all() const { return {calls_.data(), n_}; }

 private:
  std::vector<std::unique_ptr<DraftCall>> calls_;  // the first n_ are in use; the others' memory is kept
  size_t n_ = 0;
};

}  // namespace aerie
