// What the programs here do about an error: they say it and end.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "kernels/status.h"

namespace aerie::bench {

[[noreturn]] inline void fail(const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::exit(1);
}
template <class T>
T take(Result<T> r) {
  if (!r.ok()) fail(r.status().message());
  return std::move(r).value();
}
inline void check(const Status& s) {
  if (!s.ok()) fail(s.message());
}

}  // namespace aerie::bench
