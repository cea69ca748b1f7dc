// A thread with as small a stack as hosts give some of theirs.
#pragma once
#if !defined(_WIN32)

#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>

#include <algorithm>
#include <functional>

namespace aerie::text::test {

inline void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_t thread;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  // 64 KiB, or the least there is: 128 KiB on 64-bit ARM.
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::max<size_t>(64 << 10, static_cast<size_t>(PTHREAD_STACK_MIN))), 0);
  const auto run = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

}  // namespace aerie::text::test

#endif
