// What this machine can do at most: read bandwidth (DRAM with 1 and 4 row streams, L3, L2) and the peak
// of the inner loops that Linear is made of (f32 FMA, bf16, int8 and int4 weights out of the L1 cache).
//   roofline [--threads N]... [--rounds N] [--isa NAME] [--json]
// Every figure is the best and the median of several rounds; all are interleaved, round after round.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/hwy_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/roofline.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/amx_tiles.h"
#include "kernels/cpu/dispatch.h"
#include "tests/bench/choose_isa.h"

HWY_BEFORE_NAMESPACE();
namespace roofline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sum of all words, `streams` sequences at once, one cache line of each in turn.
uint64_t read(const uint64_t* data, size_t words, int streams) {
  const hn::ScalableTag<uint64_t> d;
  const size_t n = hn::Lanes(d), line = 8, each = words / static_cast<size_t>(streams) / line * line;
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  if (streams == 4) {
    for (size_t i = 0; i < each; i += line)
      for (size_t j = 0; j < line; j += n) {
        a = hn::Add(a, hn::LoadU(d, data + i + j));
        b = hn::Add(b, hn::LoadU(d, data + each + i + j));
        c = hn::Add(c, hn::LoadU(d, data + 2 * each + i + j));
        e = hn::Add(e, hn::LoadU(d, data + 3 * each + i + j));
      }
  } else {
    for (size_t i = 0; i + 4 * line <= each; i += 4 * line)
      for (size_t j = 0; j < line; j += n) {
        a = hn::Add(a, hn::LoadU(d, data + i + j));
        b = hn::Add(b, hn::LoadU(d, data + i + line + j));
        c = hn::Add(c, hn::LoadU(d, data + i + 2 * line + j));
        e = hn::Add(e, hn::LoadU(d, data + i + 3 * line + j));
      }
  }
  return hn::GetLane(hn::Add(hn::Add(a, b), hn::Add(c, e)));
}

// Multiply-adds done by `rounds` of the inner loop that a format's tile consists of, from registers and L1.
// Sums start at different values, or the compiler would keep one for all.
double fma_f32(const uint8_t* memory, int64_t rounds) {
  const hn::ScalableTag<float> d;
  const size_t n = hn::Lanes(d);
  const auto* x = reinterpret_cast<const float*>(memory);
  const auto w = hn::Load(d, x), v = hn::Load(d, x + n);
  auto a0 = hn::Load(d, x + 2 * n), a1 = hn::Load(d, x + 3 * n), a2 = hn::Load(d, x + 4 * n), a3 = hn::Load(d, x + 5 * n),
       a4 = hn::Load(d, x + 6 * n), a5 = hn::Load(d, x + 7 * n), a6 = hn::Load(d, x + 8 * n), a7 = hn::Load(d, x + 9 * n),
       a8 = hn::Load(d, x + 10 * n), a9 = hn::Load(d, x + 11 * n), b0 = hn::Load(d, x + 12 * n), b1 = hn::Load(d, x + 13 * n);
  for (int64_t r = 0; r < rounds; ++r) {
    a0 = hn::MulAdd(w, v, a0); a1 = hn::MulAdd(w, v, a1); a2 = hn::MulAdd(w, v, a2); a3 = hn::MulAdd(w, v, a3);
    a4 = hn::MulAdd(w, v, a4); a5 = hn::MulAdd(w, v, a5); a6 = hn::MulAdd(w, v, a6); a7 = hn::MulAdd(w, v, a7);
    a8 = hn::MulAdd(w, v, a8); a9 = hn::MulAdd(w, v, a9); b0 = hn::MulAdd(w, v, b0); b1 = hn::MulAdd(w, v, b1);
  }
  const auto s = hn::Add(hn::Add(hn::Add(a0, a1), hn::Add(a2, a3)), hn::Add(hn::Add(a4, a5), hn::Add(a6, a7)));
  static volatile float sink;
  sink = sink + hn::GetLane(hn::Add(s, hn::Add(hn::Add(a8, a9), hn::Add(b0, b1))));
  return static_cast<double>(rounds) * 12 * static_cast<double>(n);
}

#define ROOFLINE_UNROLL _Pragma("GCC unroll 16")
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using D8 = hn::ScalableTag<uint8_t>;
using Bytes = hn::Vec<D8>;
constexpr size_t kBytes = hn::MaxLanes(D8());
HWY_INLINE void add_dots(Bytes& sum, Bytes w, Bytes x) {
#if HWY_TARGET == HWY_AVX2
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(x.raw));
#else
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(x.raw));
#endif
}
// Twelve sums in registers, weights from L1, one broadcast activation for two weights: the int8 tile's loop.
HWY_INLINE void group(Bytes w0, Bytes w1, const uint8_t* x, Bytes (&sum)[6][2]) {
  ROOFLINE_UNROLL for (int m = 0; m < 6; ++m) {
    int32_t four;
    std::memcpy(&four, x + 64 * m, 4);
    const Bytes a = hn::BitCast(D8(), hn::Set(hn::Repartition<int32_t, D8>(), four));
    add_dots(sum[m][0], w0, a);
    add_dots(sum[m][1], w1, a);
  }
}
template <bool kNibbles>
double byte_dots(const uint8_t* memory, int64_t rounds) {
  const D8 d;
  const auto high = [&](Bytes b) { return hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(hn::Repartition<uint16_t, D8>(), b))); };
  Bytes sum[6][2];
  ROOFLINE_UNROLL for (int m = 0; m < 6; ++m) sum[m][0] = sum[m][1] = hn::Set(d, static_cast<uint8_t>(m));
  const Bytes low = hn::Set(d, 15);
  for (int64_t r = 0; r < rounds; ++r) {
    const uint8_t *p = memory + (r & 15) * 256, *x = memory + 8192 + (r & 7) * 8;
    ROOFLINE_UNROLL for (int j = 0; j < 2; ++j) {
      const Bytes b0 = hn::LoadU(d, p + 128 * j), b1 = hn::LoadU(d, p + 128 * j + 64);
      if constexpr (kNibbles) {
        group(hn::And(b0, low), hn::And(b1, low), x + 4 * j, sum);
        group(hn::And(high(b0), low), hn::And(high(b1), low), x + 16 + 4 * j, sum);
      } else {
        group(b0, b1, x + 4 * j, sum);
      }
    }
  }
  static volatile uint8_t sink;
  ROOFLINE_UNROLL for (auto& s : sum) sink = sink + hn::GetLane(hn::Add(s[0], s[1]));
  return static_cast<double>(rounds) * 4 * 6 * static_cast<double>(kBytes) * (kNibbles ? 2 : 1);
}
#endif
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
#if HWY_TARGET == HWY_AVX3
HWY_INLINE Bytes byte_pairs(Bytes w, Bytes x) { return Bytes{_mm512_maddubs_epi16(w.raw, x.raw)}; }
HWY_INLINE Bytes word_pairs(Bytes w, Bytes x) { return Bytes{_mm512_madd_epi16(w.raw, x.raw)}; }
#else
HWY_INLINE Bytes byte_pairs(Bytes w, Bytes x) { return Bytes{_mm256_maddubs_epi16(w.raw, x.raw)}; }
HWY_INLINE Bytes word_pairs(Bytes w, Bytes x) { return Bytes{_mm256_madd_epi16(w.raw, x.raw)}; }
#endif
template <class Lane>
HWY_INLINE Bytes add(Bytes a, Bytes b) {
  const hn::Repartition<Lane, D8> d;
  return hn::BitCast(D8(), hn::Add(hn::BitCast(d, a), hn::BitCast(d, b)));
}
// Eight sums in registers, one broadcast activation for two weights: the loops of tiles without VNNI. Those of nibbles widen
// once a block of 32 k, whose pairs fit 16 bits; those of bytes widen the weights.
template <bool kNibbles>
HWY_INLINE void group(Bytes w0, Bytes w1, const uint8_t* x, Bytes (&sum)[4][2]) {
  ROOFLINE_UNROLL for (int m = 0; m < 4; ++m) {
    int32_t codes;
    std::memcpy(&codes, x + 64 * m, 4);
    const Bytes a = hn::BitCast(D8(), hn::Set(hn::Repartition<int32_t, D8>(), codes));
    ROOFLINE_UNROLL for (int i = 0; i < 2; ++i) {
      const Bytes w = i ? w1 : w0;
      if constexpr (kNibbles) sum[m][i] = add<int16_t>(sum[m][i], byte_pairs(w, a));
      else sum[m][i] = add<int32_t>(sum[m][i], word_pairs(w, a));
      asm volatile("" : "+v"(sum[m][i].raw));  // GCC would add up in another order, for which it has too few registers
    }
  }
}
template <bool kNibbles>
double pairs(const uint8_t* memory, int64_t rounds) {
  const D8 d;
  const hn::Repartition<uint16_t, D8> d16;
  const hn::Repartition<int16_t, D8> di16;
  const Bytes low = hn::Set(d, 15), zero = hn::Zero(d), ones = hn::BitCast(d, hn::Set(di16, 1));
  Bytes sum[4][2], of_block[4][2];
  ROOFLINE_UNROLL for (auto& row : sum) row[0] = row[1] = zero;
  const auto high = [&](Bytes b) { return hn::And(hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(d16, b))), low); };
  const auto odd = [&](Bytes b) { return hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(di16, b))); };
  const auto even = [&](Bytes b) { return odd(hn::BitCast(d, hn::ShiftLeft<8>(hn::BitCast(d16, b)))); };
  for (int64_t r = 0; r < rounds; ++r) {
    const uint8_t *p = memory + (r & 15) * 256, *x = memory + 8192 + (r & 7) * 8;
    ROOFLINE_UNROLL for (auto& row : of_block) row[0] = row[1] = zero;
    _Pragma("GCC unroll 1") for (size_t j = 0; j < 4; ++j) {
      const Bytes b0 = hn::LoadU(d, p + 2 * kBytes * j), b1 = hn::LoadU(d, p + 2 * kBytes * j + kBytes);
      if constexpr (kNibbles) {
        group<true>(hn::And(b0, low), hn::And(b1, low), x + 4 * j, of_block);
        group<true>(high(b0), high(b1), x + 16 + 4 * j, of_block);
      } else {
        group<false>(even(b0), even(b1), x + 8 * j, sum);
        group<false>(odd(b0), odd(b1), x + 8 * j + 4, sum);
      }
    }
    if constexpr (kNibbles) {
      ROOFLINE_UNROLL for (int m = 0; m < 4; ++m)
        ROOFLINE_UNROLL for (int i = 0; i < 2; ++i) sum[m][i] = add<int32_t>(sum[m][i], word_pairs(of_block[m][i], ones));
      asm volatile("" : : "r"(sum) : "memory");  // there, as the tile has them, and not in the block's registers
    }
  }
  static volatile uint8_t sink;
  ROOFLINE_UNROLL for (auto& s : sum) sink = sink + hn::GetLane(hn::Add(s[0], s[1]));
  return static_cast<double>(rounds) * 4 * 4 * 2 * static_cast<double>(kBytes) * (kNibbles ? 2 : 1);
}
#endif

double dot_int([[maybe_unused]] const uint8_t* memory, [[maybe_unused]] int64_t rounds, [[maybe_unused]] bool nibbles) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  if (!aerie::kernels::cpu::use_byte_dots(HWY_TARGET)) return nibbles ? pairs<true>(memory, rounds) : pairs<false>(memory, rounds);
#endif
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  return nibbles ? byte_dots<true>(memory, rounds) : byte_dots<false>(memory, rounds);
#else
  return 0;  // no integer dot of this set is worth a roof
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace roofline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace roofline {
HWY_EXPORT(read);
HWY_EXPORT(fma_f32);
HWY_EXPORT(dot_int);
namespace {

using Clock = std::chrono::steady_clock;

struct Memory {
  explicit Memory(size_t n) : bytes(n), data(static_cast<uint8_t*>(::operator new(n, std::align_val_t{4096}))) {
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n / 8; ++i) {
      x ^= x << 13, x ^= x >> 7, x ^= x << 17;
      const uint64_t v = x & 0x3f3f3f3f3f3f3f3fu;  // small floats, small codes: nothing denormal or infinite
      std::memcpy(data + i * 8, &v, 8);
    }
  }
  ~Memory() { ::operator delete(data, std::align_val_t{4096}); }
  size_t bytes;
  uint8_t* data;
};

// Seconds until all threads have done work(thread): each starts when all are ready.
double together(int threads, const std::function<void(int)>& work) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> team;
  for (int t = 1; t < threads; ++t)
    team.emplace_back([&, t] {
      ready.fetch_add(1);
      while (!go.load()) {}
      work(t);
    });
  while (ready.load() < threads - 1) {}
  const auto begin = Clock::now();
  go.store(true);
  work(0);
  for (auto& t : team) t.join();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

#if HWY_ARCH_X86_64
// Of two tiles of rows with two panels, out of the first-level cache. An activation is two bf16, or two bytes, so that Linear's
// multiply-adds are half as many.
double matrix(const uint8_t* memory, int64_t rounds, bool bf16) {
  aerie::kernels::cpu::AmxTiles::Shapes shapes;
  for (int i = 0; i < 8; ++i) shapes.row_bytes[i] = 64, shapes.rows[i] = 16;
  aerie::kernels::cpu::AmxTiles tiles(shapes);
  tiles.zero<0>(), tiles.zero<1>(), tiles.zero<2>(), tiles.zero<3>();
  for (int64_t r = 0; r < rounds; ++r) {
    const uint8_t* at = memory + r % 4 * 4096;
    tiles.load<4>(at, 64), tiles.load<5>(at + 1024, 64), tiles.load<6>(at + 2048, 64), tiles.load<7>(at + 3072, 64);
    if (bf16) tiles.add_bf16<0, 4, 6>(), tiles.add_bf16<1, 4, 7>(), tiles.add_bf16<2, 5, 6>(), tiles.add_bf16<3, 5, 7>();
    else tiles.add_int8<0, 4, 6>(), tiles.add_int8<1, 4, 7>(), tiles.add_int8<2, 5, 6>(), tiles.add_int8<3, 5, 7>();
  }
  return static_cast<double>(rounds) * 4 * 16 * 16 * (bf16 ? 32 : 64);
}
#endif

struct Figure {
  const char* name;
  const char* unit;
  int threads;
  std::function<double()> measure;  // one round
  std::vector<double> seen = {};
};

}  // namespace
}  // namespace roofline

int main(int argc, char** argv) {
  using namespace roofline;
  std::vector<int> threads;
  bool json = false;
  std::string isa = aerie::kernels::supported_isas().front().name();
  int rounds = 9;
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    if (a == "--json") json = true;
    else if (a == "--threads" && i + 1 < argc) threads.push_back(std::atoi(argv[++i]));
    else if (a == "--rounds" && i + 1 < argc) rounds = std::max(1, std::atoi(argv[++i]));
    else if (a == "--isa" && i + 1 < argc) {
      isa = argv[++i];
      if (!choose_isa(isa)) return 1;
    } else return std::fprintf(stderr, "usage: roofline [--threads N]... [--rounds N] [--isa NAME] [--json]\n"), 1;
  }
  if (threads.empty()) {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    threads.push_back(1);
    if (all > 1) threads.push_back(all);
  }
  const Memory dram(size_t{1} << 30);
  std::vector<std::unique_ptr<Memory>> cache;
  for (int t = 0; t < *std::max_element(threads.begin(), threads.end()); ++t) cache.push_back(std::make_unique<Memory>(4 << 20));
  static std::atomic<uint64_t> sink;

  std::vector<Figure> figures;
  for (const int n : threads) {
    if (n < 1 || n > 1024) return std::fprintf(stderr, "roofline: --threads %d\n", n), 1;
    for (const int streams : {1, 4})
      figures.push_back({streams == 1 ? "dram_read_1_stream" : "dram_read", "GB/s", n, [&dram, n, streams] {
                           const size_t words = dram.bytes / 8 / static_cast<size_t>(n);
                           const double s = together(n, [&](int t) {
                             sink += AERIE_DISPATCH(read)(reinterpret_cast<const uint64_t*>(dram.data) + static_cast<size_t>(t) * words, words, streams);
                           });
                           return static_cast<double>(dram.bytes) / s * 1e-9;
                         }});
    for (const auto& [name, kib] : {std::pair{"l3_read", 4096}, std::pair{"l2_read", 256}})
      figures.push_back({name, "GB/s", n, [&cache, n, kib = kib] {
                           const int repeats = (64 << 10) / kib;
                           const double s = together(n, [&](int t) {
                             for (int i = 0; i < repeats; ++i)
                               sink += AERIE_DISPATCH(read)(reinterpret_cast<const uint64_t*>(cache[static_cast<size_t>(t)]->data), static_cast<size_t>(kib) * 128, 1);
                           });
                           return static_cast<double>(n) * repeats * kib * 1024.0 / s * 1e-9;
                         }});
    const auto peak = [&](const char* name, auto work) {
      figures.push_back({name, "GMAC/s", n, [&cache, n, work] {
                           std::vector<double> macs(static_cast<size_t>(n));
                           const double s = together(n, [&](int t) { macs[static_cast<size_t>(t)] = work(cache[static_cast<size_t>(t)]->data); });
                           double sum = 0;
                           for (const double m : macs) sum += m;
                           return sum / s * 1e-9;
                         }});
    };
    peak("f32", [](const uint8_t* m) { return AERIE_DISPATCH(fma_f32)(m, 4000000); });
    peak("int8", [](const uint8_t* m) { return AERIE_DISPATCH(dot_int)(m, 1000000, false); });
    peak("int4", [](const uint8_t* m) { return AERIE_DISPATCH(dot_int)(m, 500000, true); });
#if HWY_ARCH_X86_64
    if (!aerie::kernels::cpu::use_matrix_unit()) continue;
    peak("bf16_matrix", [](const uint8_t* m) { return matrix(m, 1000000, true); });
    peak("int8_matrix", [](const uint8_t* m) { return matrix(m, 1000000, false); });
#endif
  }
  for (int r = 0; r <= rounds; ++r)
    for (Figure& f : figures) {
      const double v = f.measure();
      if (r > 0) f.seen.push_back(v);  // the first round warms up
    }
  if (json) std::printf("{\"isa\": \"%s\", \"figures\": [\n", isa.c_str());
  else std::printf("%-20s %8s %10s %10s %10s\n", "", "threads", "median", "least", "most");
  for (size_t i = 0; i < figures.size(); ++i) {
    Figure& f = figures[i];
    std::sort(f.seen.begin(), f.seen.end());
    const double median = f.seen[f.seen.size() / 2];
    if (json)
      std::printf("  {\"name\": \"%s\", \"unit\": \"%s\", \"threads\": %d, \"median\": %.2f, \"least\": %.2f, \"most\": %.2f}%s\n", f.name, f.unit, f.threads,
                  median, f.seen.front(), f.seen.back(), i + 1 < figures.size() ? "," : "]}");
    else std::printf("%-20s %8d %10.1f %10.1f %10.1f  %s\n", f.name, f.threads, median, f.seen.front(), f.seen.back(), f.unit);
  }
}
#endif
