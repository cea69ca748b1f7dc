// aerie_session_set_tree when the heap runs out in it: the tree of before stays, for the session and for its forks.
#include <utility>

#include "aerie/profile.h"
#include "tests/unit/capi/capi_fixtures.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

constexpr int32_t kChain = 2;  // nodes of the tree of before

// What the session's next cycles verify beside the root: in every one the same, or -1.
int32_t nodes(aerie_session* session, aerie_error* err) {
  int32_t all = -2;
  for (int i = 0; i < 3; ++i) {
    aerie_step_result r;
    AERIE_INIT(r);
    EXPECT_EQ(aerie_session_step(session, nullptr, &r, err), AERIE_OK) << err->message;
    aerie_statistics s;
    AERIE_INIT(s);
    EXPECT_EQ(aerie_session_statistics(session, &s, err), AERIE_OK);
    all = all == -2 || all == s.chosen_nodes ? s.chosen_nodes : -1;
  }
  return all;
}

TEST(OutOfMemory, ASetTreeThatFailsChangesNothing) {
  Host host;
  const aerie_runtime_options one = with_threads(1);
  ASSERT_EQ(host.open(&one, true), AERIE_OK) << host.err.message;
  aerie_session_release(std::exchange(host.session, nullptr));
  aerie_profile* costs = nullptr;
  aerie_profile_options quick;
  AERIE_INIT(quick);
  quick.quick = 1;
  quick.n_drafters = 1;
  quick.drafters = &host.drafter;
  ASSERT_EQ(aerie_profile_create(&costs, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_profile_measure(costs, host.model, &quick, &host.err), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_profile_attach(costs, host.model, &host.err), AERIE_OK) << host.err.message;
  // A new drafter, of which nothing is known yet but its costs, and a session with a small chain.
  const auto begin = [&] {
    aerie_drafter_release(std::exchange(host.drafter, nullptr));
    aerie_drafter_options two;
    AERIE_INIT(two);
    two.package = demo_head();
    two.max_sessions = 2;
    ASSERT_EQ(aerie_drafter_open(host.model, &two, &host.drafter, &host.err), AERIE_OK) << host.err.message;
    ASSERT_EQ(aerie_profile_attach_drafter(costs, host.drafter, &host.err), AERIE_OK) << host.err.message;
    Settings chain(host.drafter, AERIE_TREE_CHAIN);
    chain.tree.nodes = kChain;
    ASSERT_EQ(chain.create(host.model, &host.session, &host.err), AERIE_OK) << host.err.message;
    ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
    ASSERT_EQ(nodes(host.session, &host.err), kChain);
  };
  const int32_t ranks[] = {0, -1, 1, -1, 2, -1, 0, 0, -1, 0, 1, -1};
  aerie_tree_options trees[4];
  for (aerie_tree_options& t : trees) AERIE_INIT(t);
  trees[0].policy = AERIE_TREE_EAGLE2;
  trees[0].nodes = 12;
  trees[1].policy = AERIE_TREE_STATIC;
  trees[1].n_paths = 5;
  trees[1].paths = ranks;
  trees[2].policy = AERIE_TREE_CAST;
  trees[3].policy = AERIE_TREE_AUTO;
  for (const aerie_tree_options& tree : trees) {
    int32_t failures = 0;
    for (const int64_t length : {int64_t{1}, int64_t{3}, Shortage::kForEver}) {
      bool failed = true;
      for (int64_t at = 0; failed && !HasFailure(); at += 1 + at / 24) {
        SCOPED_TRACE("policy " + std::to_string(tree.policy) + ", allocation " + std::to_string(at) + " and " +
                     std::to_string(length - 1) + " more");
        begin();
        Shortage::begin(at, length);
        const int32_t code = aerie_session_set_tree(host.session, &tree, &host.err);
        failed = Shortage::end();
        if (code != AERIE_OK) {
          ++failures;
          EXPECT_EQ(code, AERIE_E_OUT_OF_MEMORY) << host.err.message;
          EXPECT_EQ(nodes(host.session, &host.err), kChain);
          aerie_session* fork = nullptr;
          ASSERT_EQ(aerie_session_fork(host.session, nullptr, &fork, &host.err), AERIE_OK) << host.err.message;
          EXPECT_EQ(nodes(fork, &host.err), kChain);
          aerie_session_release(fork);
        }
        aerie_session_release(std::exchange(host.session, nullptr));
      }
    }
    EXPECT_GT(failures, 2);
  }
  aerie_profile_release(costs);
}

}  // namespace
}  // namespace aerie_capi_test
