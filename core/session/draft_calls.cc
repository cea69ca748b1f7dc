#include "core/session/draft_calls.h"

namespace aerie {

Status DraftCall::record(Plan& plan, bool* observed) {
  *observed = false;
  AERIE_TRY(observe.record(plan));
  *observed = true;
  return request.level < 0 ? Status() : propose.record(plan);
}

namespace {

// Roots of a drafter that fills blocks are as many rows of its layers as a block has.
bool has_room(const DraftCall& call, const DraftRequest& request, int64_t observed, int64_t proposed) {
  const int64_t rows = call.propose.rows() + proposed, block = request.level == 0 ? request.drafter->resources().block_rows : 0;
  return call.observe.rows() + observed <= kMaxDraftRows && rows <= kMaxDraftRows && rows * block <= kMaxBlockRows;
}

}  // namespace

DraftCall& DraftCalls::join(const DraftRequest& request, Session* session, int64_t observed, int64_t proposed) {
  for (const auto& call : all())
    if (call->request == request && !request.drafter->one_sequence() && has_room(*call, request, observed, proposed)) {
      call->sessions.push_back(session);
      return *call;
    }
  return add(request, session);
}

DraftCall& DraftCalls::add(const DraftRequest& request, Session* session) {
  if (n_ == calls_.size()) calls_.push_back(std::make_unique<DraftCall>());
  DraftCall& call = *calls_[n_++];
  call.request = request;
  call.observe.begin(*request.drafter);
  call.propose.begin(*request.drafter, request.level, request.width, request.want_logits);
  call.sessions.assign(1, session);
  return call;
}

}  // namespace aerie
