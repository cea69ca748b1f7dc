// The keys and values of a block of kPageSlots positions, brought as the tiles of attention read them.
#include <algorithm>

#include "hwy/highway.h"
#include "kernels/cpu/attention_tile.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/narrow_floats.h"

#if defined(AERIE_ATTENTION_BLOCK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef AERIE_ATTENTION_BLOCK_INL_H_
#undef AERIE_ATTENTION_BLOCK_INL_H_
#else
#define AERIE_ATTENTION_BLOCK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace aerie::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F4 = hn::FixedTag<float, 4>;

HWY_INLINE float Load1(KvRow<float> row, int64_t i) { return row.at[i]; }
HWY_INLINE float Load1(KvRow<uint16_t> row, int64_t i) { return from_bf16(row.at[i]); }
HWY_INLINE float Load1(KvRow<int8_t> row, int64_t i) { return static_cast<float>(row.at[i]) * row.scale; }

// kLanes elements.
HWY_INLINE VF LoadLanes(KvRow<float> row, int64_t i) { return hn::LoadU(F(), row.at + i); }
HWY_INLINE VF LoadLanes(KvRow<uint16_t> row, int64_t i) { return LoadBf16(row.at + i); }
HWY_INLINE VF LoadLanes(KvRow<int8_t> row, int64_t i) {
  const auto codes = hn::PromoteTo(hn::RebindToSigned<F>(), hn::LoadU(hn::Rebind<int8_t, F>(), row.at + i));
  return hn::Mul(hn::ConvertTo(F(), codes), hn::Set(F(), row.scale));
}

// A word holds as many elements of one row as fit into 32 bits. Four words, from element i on:
template <class T>
constexpr int64_t kWord = 4 / static_cast<int64_t>(sizeof(T));
template <class T>
HWY_INLINE hn::Vec<F4> LoadWords(KvRow<T> row, int64_t i) {
  return hn::BitCast(F4(), hn::LoadU(hn::FixedTag<uint8_t, 16>(), reinterpret_cast<const uint8_t*>(row.at + i)));
}
// Those of every fourth of the rows from row[0] on, a block of the vector each.
template <class T>
HWY_INLINE VF LoadBlocks(const KvRow<T>* row, int64_t i) {
  const F d;
  if constexpr (kLanes == 4) {
    return LoadWords(row[0], i);
  } else if constexpr (kLanes == 8) {
    return hn::Combine(d, LoadWords(row[4], i), LoadWords(row[0], i));
  } else {
    const hn::Half<F> half;
    return hn::Combine(d, hn::Combine(half, LoadWords(row[12], i), LoadWords(row[8], i)),
                       hn::Combine(half, LoadWords(row[4], i), LoadWords(row[0], i)));
  }
}

// A word of each of kLanes rows to their elements: out[0], out[kPageSlots], ...
template <class T>
struct Elements {
  HWY_INLINE explicit Elements(const KvRow<float>*) {}
  HWY_INLINE void store(VF word, float* out) const { hn::Store(word, F(), out); }
};
template <>
struct Elements<uint16_t> {
  HWY_INLINE explicit Elements(const KvRow<uint16_t>*) {}
  HWY_INLINE void store(VF word, float* out) const {
    const hn::RebindToUnsigned<F> du;
    const auto bits = hn::BitCast(du, word);
    hn::Store(hn::BitCast(F(), hn::ShiftLeft<16>(bits)), F(), out);
    hn::Store(hn::BitCast(F(), hn::And(bits, hn::Set(du, 0xffff0000u))), F(), out + kPageSlots);
  }
};
template <>
struct Elements<int8_t> {
  HWY_INLINE explicit Elements(const KvRow<int8_t>* row) {
    HWY_ALIGN float s[kLanes];
    for (size_t l = 0; l < kLanes; ++l) s[l] = row[l].scale;
    scale = hn::Load(F(), s);
  }
  HWY_INLINE void store(VF word, float* out) const {
    const auto codes = hn::BitCast(hn::RebindToSigned<F>(), word);
    const auto put = [&](auto code, int64_t i) HWY_ATTR {
      hn::Store(hn::Mul(hn::ConvertTo(F(), hn::ShiftRight<24>(code)), scale), F(), out + i * kPageSlots);
    };
    put(hn::ShiftLeft<24>(codes), 0);
    put(hn::ShiftLeft<16>(codes), 1);
    put(hn::ShiftLeft<8>(codes), 2);
    put(codes, 3);
  }
  VF scale;
};

// keys[i * kPageSlots + j] = row[j][i] for begin <= j < end, whole vectors: lanes are positions, so that a score needs
// no horizontal sum.
template <class T>
void TransposeKeys(const KvRow<T>* row, int64_t begin, int64_t end, int64_t dim, float* HWY_RESTRICT keys) {
  const F d;
  const hn::RepartitionToWide<F> pairs;
  const auto lower = [&](VF a, VF b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  const auto upper = [&](VF a, VF b) HWY_ATTR {
    return hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, a), hn::BitCast(pairs, b)));
  };
  constexpr int64_t kNext = kWord<T> * kPageSlots;
  for (int64_t j = begin; j < end; j += kLanes) {
    const Elements<T> elements(row + j);
    int64_t i = 0;
    for (; i + 4 * kWord<T> <= dim; i += 4 * kWord<T>) {
      const VF a = LoadBlocks(row + j, i), b = LoadBlocks(row + j + 1, i), c = LoadBlocks(row + j + 2, i),
               e = LoadBlocks(row + j + 3, i);
      const VF ab0 = hn::InterleaveLower(d, a, b), ce0 = hn::InterleaveLower(d, c, e);
      const VF ab1 = hn::InterleaveUpper(d, a, b), ce1 = hn::InterleaveUpper(d, c, e);
      float* out = keys + i * kPageSlots + j;
      elements.store(lower(ab0, ce0), out);
      elements.store(upper(ab0, ce0), out + kNext);
      elements.store(lower(ab1, ce1), out + 2 * kNext);
      elements.store(upper(ab1, ce1), out + 3 * kNext);
    }
    for (; i < dim; ++i)
      for (int64_t l = 0; l < static_cast<int64_t>(kLanes); ++l) keys[i * kPageSlots + j + l] = Load1(row[j + l], i);
  }
}

// Rows of whole vectors, zeros behind dim.
template <class T>
void ExpandValues(const KvRow<T>* row, int64_t begin, int64_t end, int64_t dim, float* HWY_RESTRICT values) {
  const F d;
  const int64_t padded = padded_dim(dim);
  for (int64_t j = begin; j < end; ++j) {
    float* out = values + j * padded;
    int64_t i = 0;
    for (; i + static_cast<int64_t>(kLanes) <= dim; i += kLanes) hn::Store(LoadLanes(row[j], i), d, out + i);
    for (; i < dim; ++i) out[i] = Load1(row[j], i);
    for (; i < padded; ++i) out[i] = 0.0f;
  }
}

// The keys and values of a block as Block wants them. What the next block has in common with the one before it (tree
// rows of one text: all but their last few positions) is not brought again.
template <class T>
class BlockRows {
 public:
  BlockRows(const KvHead<T>& keys, const KvHead<T>& values, int64_t dim, const AttentionMemory& m)
      : keys_(keys), values_(values), dim_(dim), m_(m) {}
  // Are these slots there, the first of those that are?
  bool holds(const int64_t* slots, int64_t n) const { return n <= n_ && std::equal(slots, slots + n, slots_); }
  void bring(const int64_t* slots, int64_t n) {
    int64_t begin = std::mismatch(slots, slots + std::min(n, n_), slots_).first - slots;
    begin = begin / static_cast<int64_t>(kLanes) * static_cast<int64_t>(kLanes);
    const int64_t end = round_up(n, kLanes);
    KvRow<T> row[kPageSlots], value[kPageSlots];
    for (int64_t j = begin; j < end; ++j) {  // behind n: read, not used
      slots_[j] = slots[std::min(j, n - 1)];
      row[j] = keys_.row(slots_[j]);
      value[j] = values_.row(slots_[j]);
    }
    n_ = n;
    TransposeKeys(row, begin, end, dim_, m_.keys);
    if (sizeof(T) == 4 && dim_ % 16 == 0) {
      for (int64_t j = begin; j < n; ++j) at_[j] = reinterpret_cast<const float*>(value[j].at);
    } else {
      ExpandValues(value, begin, n, dim_, m_.values);
      for (int64_t j = begin; j < n; ++j) at_[j] = m_.values + j * padded_dim(dim_);
    }
  }
  const float* const* values() const { return at_; }

 private:
  const KvHead<T>&keys_, &values_;
  int64_t dim_, n_ = 0;
  const AttentionMemory& m_;
  int64_t slots_[kPageSlots];
  const float* at_[kPageSlots];
};

}  // namespace HWY_NAMESPACE
}  // namespace aerie::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
