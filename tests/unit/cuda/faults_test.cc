// Sessions on a device that fails: what is said, what still works, and that everything is given back.
#include "unit/cuda/session_support.h"

namespace aerie::test {
namespace {

using kernels::cuda::emulation::allocated_bytes;
using kernels::cuda::emulation::Faults;
struct Failing {
  explicit Failing(const Faults& f) { kernels::cuda::emulation::set_faults(f); }
  ~Failing() { kernels::cuda::emulation::set_faults({}); }
};

std::unique_ptr<Session> prompted(const std::shared_ptr<Model>& model, bool drafts) {
  SessionOptions o = sampled(0.8f);
  if (drafts) {
    o.drafter = open_drafter(model, "eagle", eagle());
    o.tree.name = "chain";
  }
  auto session = must(Session::create(model, o));
  must(session->append(kPrompt));
  return session;
}

// One step to its end or failure.
Status step(Session& session, int32_t tokens, std::vector<int32_t>* text = nullptr) {
  StepResult r;
  const Status s = session.step(tokens, std::chrono::microseconds(0), &r);
  for (const EmittedToken& t : r.tokens)
    if (s.ok() && text) text->push_back(t.id);
  return s;
}

TEST(CudaFaults, ALostDeviceEndsItsSessionsAndGivesBackAll) {
  const int64_t before = allocated_bytes();
  for (const int64_t launches : {3, 150, 700}) {
    SCOPED_TRACE(launches);
    {
      const auto device = cuda();
      const auto model = open_model(target(), device);
      const auto one = prompted(model, true), other = prompted(model, false);
      {
        const Failing lost({.launches = launches});
        Status s;
        for (int i = 0; i < 60 && s.ok(); ++i) s = step(*one, 1);
        EXPECT_EQ(s.code(), Code::device) << s.message();
        EXPECT_NE(s.message().find("cuda"), std::string::npos) << s.message();
        EXPECT_EQ(device->allocate(64), nullptr);
      }
      EXPECT_EQ(device->no_memory("features").code(), Code::device) << "not a want of memory";
      EXPECT_EQ(step(*other, 1).code(), Code::device);  // even if it would answer again
      EXPECT_FALSE(Session::create(model, sampled(0)).ok());
    }
    EXPECT_EQ(allocated_bytes(), before);
  }
  // A new runtime on a device that is back works.
  std::vector<int32_t> text;
  must(step(*prompted(open_model(target(), cuda()), false), 2, &text));
  EXPECT_FALSE(text.empty());
}

TEST(CudaFaults, AStepThatFindsNoMemoryCanBeTriedAgain) {
  const int64_t before = allocated_bytes();
  {
    const auto model = open_model(target(), cuda());
    const std::vector<int32_t> want = generate(*prompted(model, false), 6);
    const auto session = prompted(model, false);
    int failed = 0;
    for (int64_t room = 0; room < int64_t{1} << 24; room += 256 << 10) {  // each time for one block more
      const Failing little({.memory = allocated_bytes() + room});
      const Status s = step(*session, 1);
      if (s.ok()) break;
      EXPECT_EQ(s.code(), Code::out_of_memory) << s.message();
      ++failed;
    }
    EXPECT_GE(failed, 1);
    must(session->rewind(kPrompt.size()));  // what came until then
    EXPECT_EQ(generate(*session, 6), want);
  }
  EXPECT_EQ(allocated_bytes(), before);
}

TEST(CudaFaults, ADrafterThatFindsNoMemoryLeavesTheTarget) {
  const auto model = open_model(target(), cuda());
  const auto kinds = must(load_plugin(drafter_library("eagle")));
  const auto package = must(Package::open(eagle()));
  const int64_t before = allocated_bytes();
  {
    const Failing little({.memory = allocated_bytes() + 1000});
    EXPECT_EQ(Drafter::open(model, kinds[0], package, {}).status().code(), Code::out_of_memory);
  }
  EXPECT_EQ(allocated_bytes(), before);
  EXPECT_EQ(generate(*prompted(model, false), 3).size(), 3u);
}

}  // namespace
}  // namespace aerie::test
