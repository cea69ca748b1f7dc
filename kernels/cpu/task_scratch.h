// The calling thread's scratch memory, which goes when the thread does, or the process.
#pragma once

#include "kernels/cpu/op_kernels.h"

#if defined(_WIN32)
#include <memory>

#include "kernels/win32.h"
#endif

namespace aerie::kernels::cpu {

#if defined(_WIN32)

// By the system's own slot: what GCC makes of thread_local there is gone before its destructors run.
class TaskScratch {
 public:
  TaskScratch() : scratch_(static_cast<Scratch*>(FlsGetValue(slot()))) {
    if (scratch_) return;
    auto own = std::make_unique<Scratch>();
    if (!FlsSetValue(slot(), own.get())) throw std::bad_alloc();
    scratch_ = own.release();
  }
  Scratch& get() { return *scratch_; }

 private:
  static DWORD slot() {
    static const DWORD index = [] {
      stay_loaded(reinterpret_cast<const void*>(&give_back));
      return FlsAlloc(give_back);
    }();
    return index;
  }
  static void WINAPI give_back(void* scratch) {
    const std::unique_ptr<Scratch> own(static_cast<Scratch*>(scratch));
    if (own) own->release();
  }

  Scratch* scratch_;
};

#else

// Others' exit handlers and thread-local objects may step after it has gone: then a task gives back what it took.
class TaskScratch {
 public:
  TaskScratch() {
    thread_local struct Owner {
      ~Owner() {
        scratch_.release();
        ended_ = true;
      }
    } owner;
  }
  ~TaskScratch() {
    if (ended_) scratch_.release();
  }
  Scratch& get() { return scratch_; }

 private:
  static inline thread_local constinit Scratch scratch_;
  static inline thread_local constinit bool ended_ = false;
};

#endif

}  // namespace aerie::kernels::cpu
