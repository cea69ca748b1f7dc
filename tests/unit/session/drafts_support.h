// What holds of any drafter's drafts: they change no token, and a batch changes none of them.
#pragma once

#include <algorithm>

#include "core/session/batch.h"
#include "tests/support/forward.h"
#include "tests/unit/session/save_support.h"

namespace aerie::test {

// Behind the prompt a session of `o` writes what one without its drafter does: on its way, forked, rewound and restored. Drafts that it accepted.
inline uint64_t expect_drafts_change_nothing(const std::shared_ptr<Model>& model, const SessionOptions& o, std::span<const int32_t> prompt,
                                             const std::string& what) {
  SCOPED_TRACE(what);
  const auto begun = [&](const SessionOptions& options) {
    auto session = must(Session::create(model, options));
    must(session->append(prompt));
    return session;
  };
  SessionOptions plain = o;
  plain.drafter = nullptr;
  const auto own = generate(*begun(plain), 60);
  const std::vector<int32_t> first(own.begin(), own.begin() + 25), rest(own.begin() + 25, own.end());
  auto session = begun(o);
  EXPECT_EQ(generate(*session, 25), first);
  const Bytes bytes = saved(*session);
  EXPECT_EQ(generate(*must(session->fork(5)), 35), rest) << "the fork";
  EXPECT_EQ(generate(*session, 35), rest);
  must(session->rewind(prompt.size() + 25));
  EXPECT_EQ(generate(*session, 35), rest) << "again";
  EXPECT_EQ(session->statistics().drafter_failures, 0u);
  EXPECT_EQ(generate(*must(Session::restore(model, o, bytes)), 35), rest) << "restored";
  return session->statistics().accepted;
}

// Three sessions of a batch, whose prompts of tokens below `vocab` differ, write and accept what each does alone. Drafts that they accepted.
inline uint64_t expect_batch_as_alone(const std::shared_ptr<Model>& model, SessionOptions o, uint32_t vocab) {
  std::vector<std::unique_ptr<Session>> alone, together;
  for (uint64_t stream = 0; stream < 3; ++stream)
    for (auto* all : {&alone, &together}) {
      o.sampling.stream = stream;
      all->push_back(must(Session::create(model, o)));
      must(all->back()->append(random_tokens(12 + 9 * static_cast<int32_t>(stream), vocab, 7 + static_cast<uint32_t>(stream))));
    }
  auto batch = must(Batch::create(model));
  for (const auto& s : together) must(batch->add(*s));
  std::vector<std::vector<int32_t>> got(3);
  for (int step = 0; step < 400 && std::any_of(got.begin(), got.end(), [](const auto& t) { return t.size() < 40; }); ++step) {
    must(batch->step(0, std::chrono::microseconds{0}));
    for (size_t i = 0; i < 3; ++i)
      for (const EmittedToken& t : together[i]->result().tokens) got[i].push_back(t.id);
  }
  uint64_t accepted = 0;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i], generate(*alone[i], got[i].size())) << i;
    EXPECT_EQ(together[i]->statistics().accepted, alone[i]->statistics().accepted) << i;
    EXPECT_EQ(together[i]->statistics().drafter_failures, 0u) << i;
    accepted += together[i]->statistics().accepted;
  }
  return accepted;
}

}  // namespace aerie::test
