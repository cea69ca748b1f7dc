// Ctrl-C, and other wishes that the program end.
#pragma once

#include <csignal>

#include "aerie/aerie.h"

namespace cli {

// Ctrl-C ends what the session generates, not the program, so that what there is gets printed and counted; a second one ends
// it at once. While it lives, for one session.
class StopOnInterrupt {
 public:
  explicit StopOnInterrupt(aerie_session* session);
  ~StopOnInterrupt();
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  void (*before_)(int);
};
constexpr int kEndedBySignal = 128;  // plus its number, a command's status; main ends as the shell expects
constexpr int kInterrupted = kEndedBySignal + SIGINT;

// Ctrl-C, or an end wished for otherwise, while a file is written: the library stops, and leaves no part of it. A second one ends
// the program at once. While it lives, one at a time.
class StopWriting {
 public:
  StopWriting();
  ~StopWriting();
  StopWriting(const StopWriting&) = delete;
  StopWriting& operator=(const StopWriting&) = delete;
  static int signal();  // the one that came, or 0

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM,
#ifdef SIGHUP
                                     SIGHUP
#else
                                     SIGBREAK  // Windows: its console is closed
#endif
  };
  void (*before_[3])(int);
};

}  // namespace cli
