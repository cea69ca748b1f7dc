// Waiting for a number to change: std::atomic's wait and notify_all where the system has them (a futex). Elsewhere libstdc++ makes
// them of a mutex, and to version 12 looks at the number before it takes that: a notification in between is lost.
#pragma once

#include <atomic>
#include <cstdint>
#if defined(_WIN32)
#include "kernels/win32.h"
#elif !defined(__linux__)
#include <condition_variable>
#include <mutex>
#endif

namespace aerie::kernels::cpu {

class Parking {
 public:
#if defined(__linux__)
  void wait(const std::atomic<uint32_t>& number, uint32_t seen) { number.wait(seen, std::memory_order_seq_cst); }
  void notify_all(std::atomic<uint32_t>& number) { number.notify_all(); }
#elif defined(_WIN32)
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  void wait(const std::atomic<uint32_t>& number, uint32_t seen) {
    while (number.load(std::memory_order_seq_cst) == seen)
      WaitOnAddress(const_cast<std::atomic<uint32_t>*>(&number), &seen, sizeof seen, INFINITE);
  }
  void notify_all(std::atomic<uint32_t>& number) { WakeByAddressAll(&number); }
#else
  void wait(const std::atomic<uint32_t>& number, uint32_t seen) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return number.load(std::memory_order_seq_cst) != seen; });
  }
  void notify_all(std::atomic<uint32_t>&) {
    { const std::lock_guard<std::mutex> lock(mutex_); }  // who has looked is waiting by now
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
#endif
};

}  // namespace aerie::kernels::cpu
