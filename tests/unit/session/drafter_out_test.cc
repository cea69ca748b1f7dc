// A drafter that is out is left alone, and one that does not begin stops neither a fork nor a restored session.
#include <set>

#include "tests/unit/session/save_support.h"

namespace aerie::test {
namespace {

// A host drafter that repeats the first token, until it is told to fail.
struct Patient {
  int calls = 0, destroyed = 0;  // calls: all but describe, create and destroy
  int good_begins = 1 << 20;
  bool proposes = true;
  int unbegun = 0;               // asked about a sequence that has not begun
  std::set<int32_t> begun;
};
Patient patient;

int32_t patient_begins(void*, int32_t seq) {
  ++patient.calls;
  patient.begun.erase(seq);
  if (patient.good_begins-- <= 0) return AERIE_D_FAILED;
  patient.begun.insert(seq);
  return AERIE_D_OK;
}

int32_t patient_proposes(void*, const aerie_host_context* c, aerie_host_candidates* out) {
  ++patient.calls;
  patient.unbegun += !patient.begun.contains(c->seq);
  if (!patient.proposes) return AERIE_D_FAILED;
  out->count = 1;
  out->token[0] = c->tokens[0];
  out->parent[0] = -1;
  out->confidence[0] = 0.5f;
  return AERIE_D_OK;
}

const aerie_drafter_plugin_table kPatient = {
    sizeof kPatient, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
    [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
      out->flags = AERIE_DRAFTER_HOST_TOKENS | AERIE_DRAFTER_NO_PACKAGE;
      std::strcpy(out->id, "patient");
      return i == 0 ? AERIE_D_OK : AERIE_D_INVALID;
    },
    [](const aerie_drafter_host*, const char*, aerie_drafter* out, aerie_drafter_error*) -> int32_t {
      out->destroy = [](void*) { ++patient.destroyed; };
      out->open = [](void*, const aerie_drafter_open_info*, aerie_drafter_needs*, aerie_drafter_error*) -> int32_t { return AERIE_D_OK; };
      out->begin = patient_begins;
      out->end = [](void*, int32_t seq) { ++patient.calls, patient.begun.erase(seq); };
      out->rollback = [](void*, int32_t, int32_t) -> int32_t { return ++patient.calls, AERIE_D_OK; };
      out->propose_host = patient_proposes;
      return AERIE_D_OK;
    }};

class DrafterOut : public testing::Test {
 protected:
  void SetUp() override {
    patient = {};
    model_ = open_model(converted(golden("mha"), "patient-target", kernels::DType::f32), cpu(1));
    auto plain = must(Session::create(model_, options()));
    must(plain->append(kPrompt));
    want_ = generate(*plain, kTokens);
    DrafterOptions o;
    o.log = [this](int32_t, const std::string& m) { log_.push_back(m); };
    drafter_ = must(Drafter::open(model_, must(check_plugin_table(&kPatient, "patient"))[0], nullptr, o));
  }
  SessionOptions options() const {
    SessionOptions o;
    o.ignore_eos = true;
    o.tree.name = "chain";
    o.drafter = drafter_;
    return o;
  }
  // A session that has written so many tokens, all of them right.
  std::unique_ptr<Session> written(int32_t tokens) {
    auto session = must(Session::create(model_, options()));
    must(session->append(kPrompt));
    const auto text = generate(*session, tokens);
    EXPECT_EQ(text, std::vector<int32_t>(want_.begin(), want_.begin() + tokens));
    return session;
  }
  void expect_rest(Session& session, int32_t after) {
    EXPECT_EQ(generate(session, kTokens - after), std::vector<int32_t>(want_.begin() + after, want_.end()));
  }

  static constexpr int32_t kTokens = 60;
  const std::vector<int32_t> kPrompt = {26, 106, 150, 108, 115, 45, 37, 77, 26, 106, 150, 108};
  std::shared_ptr<Model> model_;
  std::shared_ptr<Drafter> drafter_;
  std::vector<int32_t> want_;
  std::vector<std::string> log_;
};

TEST_F(DrafterOut, IsCalledNoMoreButToBeDestroyed) {
  auto session = written(10);
  patient.proposes = false;
  expect_rest(*session, 10);
  ASSERT_TRUE(drafter_->quarantined());
  const int calls = patient.calls;
  const uint64_t failures = session->statistics().drafter_failures;
  EXPECT_EQ(failures, 3u);
  patient.good_begins = 0;

  must(session->rewind(kPrompt.size() + 10));
  expect_rest(*session, 10);
  auto fork = must(session->fork(0));
  generate(*fork, 5);
  const Bytes image = saved(*session);
  auto restored = must(Session::restore(model_, options(), image));
  generate(*restored, 5);
  expect_rest(*written(10), 10);
  must(session->set_tree({"auto"}));
  must(session->rewind(0));
  EXPECT_EQ(session->statistics().drafter_failures, failures);
  EXPECT_EQ(fork->statistics().drafter_failures + restored->statistics().drafter_failures, 0u);
  EXPECT_TRUE(restored->quarantined());
  session.reset();
  fork.reset();
  restored.reset();
  EXPECT_EQ(patient.calls, calls);
  EXPECT_EQ(log_.size(), 3u) << log_.back();
  EXPECT_EQ(patient.destroyed, 0);
  drafter_.reset();
  EXPECT_EQ(patient.destroyed, 1);
}

TEST_F(DrafterOut, ABeginThatFailsIsAnErrorOfCreationAlone) {
  auto session = written(10);
  const Bytes image = saved(*session);
  patient.good_begins = 0;
  const Status refused = Session::create(model_, options()).status();
  EXPECT_EQ(refused.code(), Code::plugin);
  EXPECT_EQ(refused.message(), "drafter patient: begin failed with code 4");
  EXPECT_TRUE(log_.empty());

  auto fork = must(session->fork(0));
  EXPECT_EQ(fork->statistics().drafter_failures, 1u);
  patient.good_begins = 1 << 20;  // it was a passing thing
  expect_rest(*fork, 10);
  EXPECT_EQ(fork->statistics().drafter_failures, 1u);
  EXPECT_GT(fork->statistics().proposed, 0u) << "it begins with the next cycle";

  patient.good_begins = 0;
  auto restored = must(Session::restore(model_, options(), image));
  EXPECT_EQ(restored->statistics().drafter_failures, 1u);
  EXPECT_FALSE(restored->quarantined());
  expect_rest(*restored, 10);
  EXPECT_TRUE(restored->quarantined()) << "it begins no more";
  EXPECT_EQ(restored->statistics().proposed, 0u);
  EXPECT_EQ(log_.size(), 3u);
  EXPECT_EQ(patient.unbegun, 0);
}

// What it has seen is in doubt after a failure: its sequence starts over, and is shown nothing before it has begun.
TEST_F(DrafterOut, ABeginThatFailsOnTheWayIsTriedAgain) {
  static int observed, begins;
  observed = begins = 0;
  static const aerie_drafter_plugin_table device = {
      sizeof device, AERIE_DRAFTER_ABI_MAJOR, 0, AERIE_DRAFTER_ABI_MINOR,
      [](uint32_t i, aerie_drafter_desc* out) -> int32_t {
        out->flags = AERIE_DRAFTER_NO_PACKAGE;
        std::strcpy(out->id, "device");
        return i == 0 ? AERIE_D_OK : AERIE_D_INVALID;
      },
      [](const aerie_drafter_host* host, const char* id, aerie_drafter* out, aerie_drafter_error* err) -> int32_t {
        kPatient.create(host, id, out, err);
        out->begin = [](void*, int32_t seq) -> int32_t {
          patient.begun.clear();
          if (++begins == 2) return AERIE_D_FAILED;
          patient.begun.insert(seq);
          return AERIE_D_OK;
        };
        out->observe = [](void*, aerie_plan*, const aerie_draft_rows*) -> int32_t {
          patient.unbegun += patient.begun.empty();
          return ++observed == 1 ? AERIE_D_FAILED : AERIE_D_OK;
        };
        out->propose = [](void*, aerie_plan*, const aerie_draft_rows*, aerie_candidates*) -> int32_t { return AERIE_D_FAILED; };
        return AERIE_D_OK;
      }};
  drafter_ = must(Drafter::open(model_, must(check_plugin_table(&device, "device"))[0], nullptr, {}));
  const auto session = written(kTokens);
  EXPECT_EQ(session->statistics().drafter_failures, 3u) << "observe, begin, propose";
  EXPECT_TRUE(session->quarantined());
  EXPECT_EQ(begins, 3);
  EXPECT_GT(observed, 1);
  EXPECT_EQ(patient.unbegun, 0);
}

}  // namespace
}  // namespace aerie::test
