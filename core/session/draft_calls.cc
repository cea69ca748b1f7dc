#include "core/session/draft_calls.h"

namespace aerie {

Status DraftCall::record(Plan& plan, bool* observed) {
  *observed = false;
  AERIE_TRY(observe.record(plan));
  *observed = true;
  return request.level < 0 ? Status() : propose.record(plan);
}

DraftCall& DraftCalls::join(const DraftRequest& request, Session* session, int64_t observed, int64_t proposed) {
  for (const auto& call : all())
    if (call->request == request && !request.drafter->one_sequence() &&
        call->observe.rows() + observed <= kMaxDraftRows && call->propose.rows() + proposed <= kMaxDraftRows) {
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
