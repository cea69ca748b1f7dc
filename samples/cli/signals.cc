#include "signals.h"

#include <atomic>
#include <iterator>

namespace cli {

namespace {

std::atomic<aerie_session*> interruptible{nullptr};
static_assert(std::atomic<aerie_session*>::is_always_lock_free, "a signal handler reads it");
volatile std::sig_atomic_t stop_signal = 0;

using Handler = void (*)(int);

// What was there before. What is ignored stays so: nohup, or in the background of a script.
Handler handle(int number, Handler handler) {
  const Handler before = std::signal(number, handler);
  if (before == SIG_IGN) std::signal(number, SIG_IGN);
  return before == SIG_ERR ? SIG_DFL : before;
}

}  // namespace

StopOnInterrupt::StopOnInterrupt(aerie_session* session) {
  interruptible.store(session);
  before_ = handle(SIGINT, [](int number) {
    std::signal(number, SIG_DFL);  // once
    aerie_session_cancel(interruptible.load());  // sets a flag
  });
}

StopOnInterrupt::~StopOnInterrupt() {
  std::signal(SIGINT, before_);
  interruptible.store(nullptr);
}

StopWriting::StopWriting() {
  stop_signal = 0;
  for (size_t i = 0; i < std::size(kSignals); ++i)
    before_[i] = handle(kSignals[i], [](int number) {
      std::signal(number, SIG_DFL);
      stop_signal = number;
    });
}

StopWriting::~StopWriting() {
  for (size_t i = 0; i < std::size(kSignals); ++i) std::signal(kSignals[i], before_[i]);
}

int StopWriting::signal() { return stop_signal; }

}  // namespace cli
