#include "verify_save.h"

namespace cli {

namespace {

Session begin(aerie_model* model, const aerie_session_options& options, const std::vector<int32_t>& prompt) {
  Session owner = create_session(model, options);
  check([&](aerie_error* e) { return aerie_session_append(owner.get(), prompt.data(), prompt.size(), e); });
  return owner;
}

// False: the text has ended.
bool step(aerie_session* session, int length, int64_t budget_us, std::vector<int32_t>* out) {
  aerie_step_options o;
  AERIE_INIT(o);
  o.max_tokens = length - static_cast<int>(out->size());
  o.budget_us = budget_us;
  aerie_step_result r;
  AERIE_INIT(r);
  check([&](aerie_error* e) { return aerie_session_step(session, &o, &r, e); });
  for (int32_t i = 0; i < r.n_tokens; ++i) out->push_back(r.tokens[i].id);
  return r.state != AERIE_STEP_DONE;
}

Session restored(aerie_model* model, const aerie_session_options& options, aerie_session* session) {
  size_t size = 0;
  check([&](aerie_error* e) { return aerie_session_save(session, nullptr, 0, &size, e); });
  std::vector<char> bytes(size);
  check([&](aerie_error* e) { return aerie_session_save(session, bytes.data(), bytes.size(), &size, e); });
  aerie_session* next = nullptr;
  check([&](aerie_error* e) { return aerie_session_restore(model, &options, bytes.data(), size, &next, e); });
  return Session(next);
}

}  // namespace

std::vector<int32_t> saved_tokens(aerie_model* model, const aerie_session_options& options, const std::vector<int32_t>& prompt,
                                  int length, std::mt19937_64& random, uint64_t* saves) {
  Session session = begin(model, options, prompt);
  std::vector<int32_t> out;
  bool more = true;
  while (more && static_cast<int>(out.size()) < length) {
    // A save sets an unfinished cycle back, so most steps finish theirs.
    more = step(session.get(), length, random() % 4 == 0 ? 1 + static_cast<int64_t>(random() % 200) : 0, &out);
    if (random() % 4 != 0) continue;
    aerie_session_options o = options;
    if (random() % 4 == 0) {
      o.drafter = nullptr;
      o.n_more_drafters = 0;
    }
    session = restored(model, o, session.get());
    ++*saves;
  }
  return out;
}

std::vector<int32_t> sliced_tokens(aerie_model* model, const aerie_session_options& options, const std::vector<int32_t>& prompt,
                                   int length, uint64_t* steps) {
  const Session session = begin(model, options, prompt);
  std::vector<int32_t> out;
  for (bool more = true; more && static_cast<int>(out.size()) < length; ++*steps) more = step(session.get(), length, 1, &out);
  return out;
}

}  // namespace cli
