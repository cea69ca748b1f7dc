// Status and Result: how every fallible call inside Aerie reports failure.
// No exception crosses a module; the C ABI turns a Status into an aerie_error.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <variant>

namespace aerie {

// Values are those of AERIE_E_* in aerie.h (a test holds the two together).
enum class Code : int32_t {
  ok = 0,
  invalid_argument = 1,  // the caller passed something that cannot be right
  not_found = 2,         // file, tensor, symbol or id absent
  io = 3,                // the operating system refused
  bad_format = 4,        // file contents are damaged or hostile
  mismatch = 5,          // two good things that do not belong together
  unsupported = 6,       // valid, but not something this build does
  out_of_memory = 7,
  cancelled = 8,
  limit = 9,             // a stated limit (context, KV budget, tree size) is reached
  plugin = 10,           // a drafter plugin misbehaved
  device = 11,           // the compute device failed
  busy = 12,             // the object is in use by another call
  internal = 13,
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with the place it happened put in front ("file: field: what").
  Status at(const std::string& where) const {
    return ok() ? *this : Status(code_, where + ": " + message_);
  }

 private:
  Code code_ = Code::ok;
  std::string message_;
};

// Never destroyed: a host may call us while its own statics are being torn down, so nothing of ours runs at exit.
inline const Status& ok_status() {
  alignas(Status) static unsigned char memory[sizeof(Status)];
  static const Status& ok = *new (memory) Status;
  return ok;
}

inline Status error(Code code, std::string message) { return Status(code, std::move(message)); }

// For where a failed allocation is handled: so short a message is kept without one.
// Nothing of ours throws but for want of memory. The host's functions may not either, but what asked for them fails alone.
inline Status a_hook_threw(const char* where, const char* what) noexcept {
  try {
    return Status(Code::internal, std::string(where) + ": a hook threw: " + what);
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, "out of memory");
  }
}
inline Status out_of_memory() noexcept { return Status(Code::out_of_memory, "out of memory"); }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}              // NOLINT: implicit by design
  Result(Status status) : state_(std::move(status)) {}       // NOLINT: implicit by design
  bool ok() const { return state_.index() == 0; }
  const Status& status() const { return ok() ? ok_status() : std::get<1>(state_); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace aerie

#define AERIE_CONCAT2(a, b) a##b
#define AERIE_CONCAT(a, b) AERIE_CONCAT2(a, b)

// Return early with a failed Status.
#define AERIE_TRY(expr)                           \
  do {                                            \
    if (::aerie::Status s_ = (expr); !s_.ok()) return s_; \
  } while (0)

// `AERIE_ASSIGN(auto x, f())`: return early on failure, else bind the value.
#define AERIE_ASSIGN(decl, expr)                                     \
  auto AERIE_CONCAT(result_, __LINE__) = (expr);                     \
  if (!AERIE_CONCAT(result_, __LINE__).ok())                         \
    return AERIE_CONCAT(result_, __LINE__).status();                 \
  decl = std::move(AERIE_CONCAT(result_, __LINE__)).value()
