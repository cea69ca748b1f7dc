// What a cancel stops, and how one that came too late is forgotten; loads that are followed and cancelled.
#include <algorithm>
#include <thread>

#include "aerie/profile.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Cancel : testing::Test {
  Host host;
  std::vector<int32_t> out;
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, true), AERIE_OK) << host.err.message;
  }
};

TEST_F(Cancel, TooLateItStopsTheNextStepUnlessItIsForgotten) {
  ASSERT_EQ(host.text(8, &out), AERIE_OK) << host.err.message;
  aerie_session_cancel(host.session);
  EXPECT_EQ(host.more(16, &out), AERIE_E_CANCELLED) << "meant for the next one";
  ASSERT_EQ(host.more(16, &out), AERIE_OK) << "one cancel stops one step";
  aerie_session_cancel(host.session);
  aerie_session_clear_cancel(host.session);
  ASSERT_EQ(host.more(24, &out), AERIE_OK) << host.err.message;
  aerie_session_clear_cancel(host.session);  // of nothing
  EXPECT_EQ(out, plain_text());
}

// As a binding does it: a watcher cancels when its time has come, and once it has been joined nothing of it is left.
TEST_F(Cancel, AWatcherThatIsJoinedLeavesNothingBehind) {
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  for (int wait = 0; out.size() < 24; wait = (wait + 150) % 4000) {
    std::thread watcher([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(wait));
      aerie_session_cancel(host.session);
    });
    aerie_step_options o;
    AERIE_INIT(o);
    o.max_tokens = 24 - static_cast<int32_t>(out.size());
    o.budget_us = 1000;
    aerie_step_result r;
    AERIE_INIT(r);
    const int32_t code = aerie_session_step(host.session, &o, &r, &host.err);
    if (code == AERIE_OK)
      for (int32_t i = 0; i < r.n_tokens; ++i) out.push_back(r.tokens[i].id);
    watcher.join();
    aerie_session_clear_cancel(host.session);
    ASSERT_TRUE(code == AERIE_OK || code == AERIE_E_CANCELLED) << host.err.message;
    AERIE_INIT(r);
    o.budget_us = 1;
    o.max_tokens = 1;
    if (out.size() == 24) break;
    ASSERT_EQ(aerie_session_step(host.session, &o, &r, &host.err), AERIE_OK) << "a step that nobody cancelled";
    for (int32_t i = 0; i < r.n_tokens; ++i) out.push_back(r.tokens[i].id);
  }
  EXPECT_EQ(out, plain_text());
}

TEST_F(Cancel, OfABatchAndOfItsMembersIsForgottenToo) {
  aerie_batch* batch = nullptr;
  ASSERT_EQ(aerie_batch_create(host.model, nullptr, &batch, &host.err), AERIE_OK);
  ASSERT_EQ(aerie_session_append(host.session, kPrompt.data(), kPrompt.size(), &host.err), AERIE_OK);
  ASSERT_EQ(aerie_batch_add(batch, host.session, &host.err), AERIE_OK);
  aerie_batch_cancel(batch);
  aerie_session_cancel(host.session);
  aerie_batch_clear_cancel(batch);
  aerie_session_clear_cancel(host.session);
  aerie_batch_result r;
  AERIE_INIT(r);
  EXPECT_EQ(aerie_batch_step(batch, nullptr, &r, &host.err), AERIE_OK) << host.err.message;
  EXPECT_EQ(r.n_failed, 0);
  aerie_batch_release(batch);
  aerie_session_clear_cancel(nullptr);
  aerie_batch_clear_cancel(nullptr);
}

TEST_F(Cancel, OfAMeasurementIsForgottenToo) {
  aerie_profile* profile = nullptr;
  ASSERT_EQ(aerie_profile_create(&profile, &host.err), AERIE_OK);
  const int32_t context = 40;
  aerie_profile_options o;
  AERIE_INIT(o);
  o.quick = 1;
  o.n_contexts = 1;
  o.contexts = &context;
  aerie_profile_cancel(profile);
  aerie_profile_clear_cancel(profile);
  EXPECT_EQ(aerie_profile_measure(profile, host.model, &o, &host.err), AERIE_OK) << host.err.message;
  aerie_profile_release(profile);
  aerie_profile_clear_cancel(nullptr);
}

struct Loading {
  std::vector<uint64_t> done;
  uint64_t total = 0;
  size_t stop_at = SIZE_MAX;  // this call says no
  static int32_t hear(void* user, uint64_t done, uint64_t total) {
    auto& me = *static_cast<Loading*>(user);
    me.done.push_back(done);
    me.total = total;
    return me.done.size() <= me.stop_at;
  }
};

TEST_F(Cancel, OpeningADrafterIsFollowedAndCancelled) {
  aerie_drafter_options d;
  AERIE_INIT(d);
  d.package = demo_head();
  d.progress = Loading::hear;
  for (const size_t stop_at : {SIZE_MAX, size_t{0}}) {
    Loading loading;
    loading.stop_at = stop_at;
    d.progress_user = &loading;
    aerie_drafter_handle* drafter = nullptr;
    const int32_t code = aerie_drafter_open(host.model, &d, &drafter, &host.err);
    ASSERT_FALSE(loading.done.empty());
    EXPECT_TRUE(std::is_sorted(loading.done.begin(), loading.done.end()));
    if (stop_at == 0) {
      EXPECT_EQ(code, AERIE_E_CANCELLED);
      EXPECT_EQ(drafter, nullptr);
      EXPECT_EQ(loading.done.size(), 1u) << "nobody is asked again";
    } else {
      EXPECT_EQ(code, AERIE_OK) << host.err.message;
      EXPECT_EQ(loading.done.back(), loading.total);
      EXPECT_GT(loading.total, 0u);
    }
    aerie_drafter_release(drafter);
  }
  ASSERT_EQ(host.text(24, &out), AERIE_OK);
  EXPECT_EQ(out, plain_text());
}

}  // namespace
}  // namespace aerie_capi_test
