// Guards for the C ABI: what every exported function does at its door. No exception leaves, the
// caller's structs are read and written within the size the caller stated, and out-parameters are
// written only when everything went well.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "aerie/aerie.h"
#include "core/platform/utf8.h"
#include "kernels/status.h"

namespace aerie::capi {

// Larger than any struct will ever grow, smaller than the garbage of an uninitialised field.
inline constexpr uint32_t kMaxStructSize = 64 * 1024;

// Fill the caller's error within the bytes it owns. Allocates nothing, so it works when memory is gone.
inline void write_error(aerie_error* err, Code code, std::string_view message) noexcept {
  if (err == nullptr || err->struct_size > kMaxStructSize) return;
  const size_t size = std::min<size_t>(err->struct_size, sizeof(aerie_error));
  constexpr size_t kMessage = offsetof(aerie_error, message);
  if (size >= kMessage) err->code = static_cast<int32_t>(code);
  if (size > kMessage) {
    err->message[one_line(message, err->message, size - kMessage - 1)] = '\0';  // a file's or plugin's own words may be in it
  }
}

// Run `f` (returns Status) behind a wall: the body of every exported function that can fail.
template <class F>
int32_t guard(aerie_error* err, F&& f) noexcept {
  static_assert(std::is_same_v<std::invoke_result_t<F>, Status>, "a guarded body returns Status");
  try {
    const Status status = std::forward<F>(f)();
    if (!status.ok()) write_error(err, status.code(), status.message());
    return static_cast<int32_t>(status.code());
  } catch (const std::bad_alloc&) {
    write_error(err, Code::out_of_memory, "out of memory");
    return AERIE_E_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    write_error(err, Code::internal, e.what());
    return AERIE_E_INTERNAL;
  } catch (...) {
    write_error(err, Code::internal, "unknown exception");
    return AERIE_E_INTERNAL;
  }
}

inline Status check_struct_size(uint32_t size, const char* name) {
  if (size >= sizeof(uint32_t) && size <= kMaxStructSize) return {};
  return error(Code::invalid_argument, std::string(name) + ": struct_size is " + std::to_string(size) +
                                           "; set it with AERIE_INIT or to sizeof");
}

// Fields that have no meaning yet are 0: they may get one.
template <class T>
bool reserved_is_set(const T& s) {
  bool set = false;
  if constexpr (requires { s.reserved; }) set = set || s.reserved != 0;
  if constexpr (requires { s.reserved0; }) set = set || s.reserved0 != 0;
  if constexpr (requires { s.reserved2; }) set = set || s.reserved2 != 0;
  return set;
}

// Read the caller's size-first struct into a zeroed local: fields an older caller does not have are
// zero, that is, the default. NULL gives all defaults (check before when that is not allowed). A newer
// caller's further fields must be zero: a request we do not know is refused, not ignored.
template <class T>
Status read_struct(const T* in, T* out, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  std::memset(static_cast<void*>(out), 0, sizeof(T));
  out->struct_size = sizeof(T);
  if (in == nullptr) return {};
  const uint32_t size = in->struct_size;
  AERIE_TRY(check_struct_size(size, name));
  std::memcpy(static_cast<void*>(out), in, std::min<size_t>(size, sizeof(T)));
  out->struct_size = sizeof(T);
  const unsigned char* bytes = reinterpret_cast<const unsigned char*>(in);
  bool newer = reserved_is_set(*out);
  for (size_t i = sizeof(T); i < size; ++i) newer = newer || bytes[i] != 0;
  if (newer) return error(Code::unsupported, std::string(name) + ": a field of a newer version of this header is set");
  return {};
}

// Check a caller's result struct at the door, before any work whose result would be lost.
template <class T>
Status check_result(const T* out, const char* name) {
  static_assert(std::is_trivially_copyable_v<T> && offsetof(T, struct_size) == 0);
  if (out == nullptr) return error(Code::invalid_argument, std::string(name) + " is NULL");
  return check_struct_size(out->struct_size, name);
}

// Hand a filled result to the caller: what an older caller has no room for is dropped, what a newer
// one has beyond ours becomes zero; struct_size stays the caller's. Call after check_result.
template <class T>
void write_result(const T& filled, T* out) noexcept {
  const uint32_t size = out->struct_size;
  const size_t known = std::min<size_t>(size, sizeof(T));
  std::memcpy(static_cast<void*>(out), &filled, known);
  if (size > known) std::memset(reinterpret_cast<char*>(out) + known, 0, size - known);
  std::memcpy(static_cast<void*>(out), &size, sizeof size);
}

inline Status require(const void* pointer, const char* name) {
  return pointer != nullptr ? Status() : error(Code::invalid_argument, std::string(name) + " is NULL");
}

}  // namespace aerie::capi
