// What a rendering may use: counted, so that no template can take more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "kernels/status.h"

namespace aerie::text::chat {

// Published templates take some hundred steps for a message, but a few look at all messages for each: 2,000 take a second then.
inline constexpr size_t kMaxLiveBytes = size_t{256} << 20;
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;
inline constexpr uint64_t kMaxSteps = 100'000'000;
// Values in one another, be they a schema's or a template's: they are walked, and destroyed, by recursion.
inline constexpr uint32_t kMaxValueDepth = 64;

class Heap {
 public:
  void spend(uint64_t steps) { steps_ += steps; }
  void take(size_t bytes) { live_ += bytes; }
  void give(size_t bytes) { live_ -= bytes; }
  // Before what may be far more than what it is made of.
  bool has_room(size_t bytes) {
    if (bytes <= kMaxLiveBytes - (live_ < kMaxLiveBytes ? live_ : kMaxLiveBytes)) return true;
    full_ = true;
    return false;
  }
  bool exceeded() const { return full_ || live_ > kMaxLiveBytes || steps_ > kMaxSteps; }
  Status status() const {
    if (steps_ > kMaxSteps) return error(Code::limit, "it takes more than " + std::to_string(kMaxSteps) + " steps");
    if (full_ || live_ > kMaxLiveBytes)
      return error(Code::limit, "its values take more than " + std::to_string(kMaxLiveBytes >> 20) + " MiB");
    return {};
  }

 private:
  size_t live_ = 0;
  uint64_t steps_ = 0;
  bool full_ = false;
};

// What values share. Counted without locks: a rendering is one thread's.
class Object {
 public:
  explicit Object(Heap* heap) : heap_(heap) { charge(64); }
  virtual ~Object() { heap_->give(charged_); }
  // How many values are in one another below it, at most: so deep its destructor goes.
  virtual uint32_t depth() const { return 0; }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  void charge(size_t bytes) {
    charged_ += bytes;
    heap_->take(bytes);
  }
  Heap* heap() const { return heap_; }
  void hold() { ++references_; }
  void let_go() {
    if (--references_ == 0) delete this;
  }

 private:
  Heap* heap_;
  size_t charged_ = 0;
  uint32_t references_ = 0;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* p) : p_(p) {
    if (p_ != nullptr) p_->hold();
  }
  Ref(const Ref& other) : Ref(other.p_) {}
  Ref(Ref&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~Ref() {
    if (p_ != nullptr) p_->let_go();
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  T* p_ = nullptr;
};

template <class T, class... A>
Ref<T> make(Heap* heap, A&&... a) {
  return Ref<T>(new T(heap, std::forward<A>(a)...));
}

}  // namespace aerie::text::chat
