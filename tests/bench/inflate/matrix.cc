#include "matrix.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <thread>

#include "kernels/e2m1.h"
#include "kernels/e4m3.h"
#include "kernels/narrow_floats.h"
#include "kernels/panel16.h"

namespace aerie::inflate {

using kernels::DType;
using kernels::Layout;
using kernels::Panel16Place;
using kernels::Tensor;

Random::Random(uint64_t seed, const std::string& name) : state_(seed * 0x9E3779B97F4A7C15u) {
  for (const char c : name) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
}

namespace {

using kernels::kPanel;
constexpr int64_t kMuch = 1 << 20;  // elements that are worth threads

// A unit of a row: codes as stored (bit patterns of f32, bf16 and fp8, int8, nibbles), and the scale of its block or row.
struct Unit {
  uint32_t code[32];
  uint32_t scale = 0;  // as stored: int4 and q4_1 a half, mxfp4 a byte, others a float
  uint16_t min = 0;    // q4_1's
};

uint16_t* halves_at(const Tensor& t, const Panel16Place& at) {
  return static_cast<uint16_t*>(t.scales) + (t.dtype == DType::int4 ? at.int4_scale() : at.q4_1_scale());
}
uint8_t* byte_at(const Tensor& t, const Panel16Place& at) { return static_cast<uint8_t*>(t.scales) + at.int4_scale(); }
uint32_t* float_at(const Tensor& t, const Panel16Place& at) { return static_cast<uint32_t*>(t.scales) + at.int8_scale(); }

void read(const Tensor& t, int64_t row, int64_t col, int32_t n, Unit* u) {
  for (int32_t i = 0; i < n; ++i) {
    const Panel16Place at(t.dtype, row, col + i, t.cols);
    switch (t.dtype) {
      case DType::f32: std::memcpy(&u->code[i], static_cast<const char*>(t.data) + at.f32() * 4, 4); break;
      case DType::bf16: u->code[i] = static_cast<const uint16_t*>(t.data)[at.bf16()]; break;
      case DType::fp8:
      case DType::int8: u->code[i] = static_cast<const uint8_t*>(t.data)[at.int8()]; break;
      case DType::int4:
      case DType::q4_1:
      case DType::mxfp4: {
        const uint8_t byte = static_cast<const uint8_t*>(t.data)[at.int4()];
        u->code[i] = at.k % kernels::kBlock < 16 ? byte & 15u : byte >> 4;
        break;
      }
      case DType::i32: break;
    }
  }
  const Panel16Place at(t.dtype, row, col, t.cols);
  if (t.dtype == DType::mxfp4) u->scale = *byte_at(t, at);
  else u->scale = kernels::is_nibbles(t.dtype) ? *halves_at(t, at) : t.scales ? *float_at(t, at) : 0;
  u->min = t.dtype == DType::q4_1 ? halves_at(t, at)[kPanel] : 0;
}

void write(const Tensor& t, int64_t row, int64_t col, int32_t n, const Unit& u) {
  for (int32_t i = 0; i < n; ++i) {
    const Panel16Place at(t.dtype, row, col + i, t.cols);
    switch (t.dtype) {
      case DType::f32: std::memcpy(static_cast<char*>(t.data) + at.f32() * 4, &u.code[i], 4); break;
      case DType::bf16: static_cast<uint16_t*>(t.data)[at.bf16()] = static_cast<uint16_t>(u.code[i]); break;
      case DType::fp8:
      case DType::int8: static_cast<uint8_t*>(t.data)[at.int8()] = static_cast<uint8_t>(u.code[i]); break;
      case DType::int4:
      case DType::q4_1:
      case DType::mxfp4: {
        uint8_t& byte = static_cast<uint8_t*>(t.data)[at.int4()];
        byte = at.k % kernels::kBlock < 16 ? static_cast<uint8_t>((byte & 0xf0) | u.code[i])
                                           : static_cast<uint8_t>((byte & 0x0f) | u.code[i] << 4);
        break;
      }
      case DType::i32: break;
    }
  }
  const Panel16Place at(t.dtype, row, col, t.cols);
  if (t.dtype == DType::mxfp4) *byte_at(t, at) = static_cast<uint8_t>(u.scale);
  else if (kernels::is_nibbles(t.dtype)) *halves_at(t, at) = static_cast<uint16_t>(u.scale);
  else if (t.scales) *float_at(t, at) = u.scale;
  if (t.dtype == DType::q4_1) halves_at(t, at)[kPanel] = u.min;
}

// Of f32, bf16, q4_1 and mxfp4.
float value(DType t, const Unit& u, int32_t i) {
  if (t == DType::q4_1) return kernels::from_half(static_cast<uint16_t>(u.scale)) * static_cast<float>(u.code[i]) + kernels::from_half(u.min);
  if (t == DType::mxfp4) return kernels::mxfp4_scale(static_cast<uint8_t>(u.scale)) * static_cast<float>(kernels::kE2m1Twice[u.code[i]]);
  return std::bit_cast<float>(t == DType::f32 ? u.code[i] : u.code[i] << 16);
}

float largest(DType t, const Unit& u, int32_t n) {
  float most = 0;
  for (int32_t i = 0; i < n; ++i) most = std::max(most, std::fabs(value(t, u, i)));
  return most;
}

// The unit of a row whose scale (or largest value) is the largest: the template of random units. Not just any: a
// unit of zeros would give more of them.
Unit loudest(const Tensor& t, int64_t row, int32_t n) {
  Unit best, u;
  float most = -1;
  for (int64_t col = 0; col + n <= t.cols; col += n) {
    read(t, row, col, n, &u);
    // Halves without their sign are ordered as their bits are; int8 and fp8 have one scale for the whole row.
    const float size = t.scales && t.dtype != DType::q4_1 && t.dtype != DType::mxfp4 ? static_cast<float>(u.scale & 0x7fff) : largest(t.dtype, u, n);
    if (size > most) {
      most = size;
      best = u;
    }
  }
  return best;
}

// Random codes whose values stay within the template's largest.
Unit noise(DType t, const Unit& like, int32_t n, Random& random) {
  Unit u;
  u.scale = like.scale, u.min = like.min;
  const auto [least_code, most_code] = std::minmax_element(like.code, like.code + n);
  const float most = t == DType::f32 || t == DType::bf16 ? largest(t, like, n) : 0;
  uint32_t loudest_code = 0;  // of mxfp4, whose codes behind the sign are ordered as their values are
  for (int32_t i = 0; i < n; ++i) loudest_code = std::max(loudest_code, like.code[i] & 7u);
  for (int32_t i = 0; i < n; ++i) {
    const uint64_t bits = random.next();
    switch (t) {
      case DType::f32: u.code[i] = std::bit_cast<uint32_t>((2 * random.uniform() - 1) * most); break;
      case DType::bf16: u.code[i] = std::bit_cast<uint32_t>((2 * random.uniform() - 1) * most) >> 16; break;  // towards zero
      case DType::int8: u.code[i] = static_cast<uint8_t>(static_cast<int8_t>(static_cast<int>(bits % 255) - 127)); break;
      case DType::fp8: u.code[i] = kernels::to_e4m3((2 * random.uniform() - 1) * kernels::kMostE4m3); break;
      case DType::int4: u.code[i] = static_cast<uint32_t>(bits & 15); break;
      case DType::q4_1: u.code[i] = *least_code + static_cast<uint32_t>(bits % (*most_code - *least_code + 1)); break;
      case DType::mxfp4: u.code[i] = static_cast<uint32_t>(bits & 8) | (loudest_code ? 1 + static_cast<uint32_t>((bits >> 4) % loudest_code) : 0); break;
      case DType::i32: break;
    }
  }
  return u;
}

Unit zero(DType t, const Unit& like, int32_t n) {
  Unit u;
  if (t != DType::q4_1) u.scale = like.scale;
  std::fill(u.code, u.code + n, t == DType::int4 ? 8u : 0u);
  return u;
}

}  // namespace

Matrix inflate_matrix(const Tensor& small, const Map& rows, const Map& columns, int32_t unit, Random random) {
  const auto n = static_cast<int64_t>(rows.size()), k = static_cast<int64_t>(columns.size()) * unit;
  Matrix m;
  m.data.assign(static_cast<size_t>(kernels::data_bytes(small.dtype, Layout::panel16, n, k)), small.dtype == DType::int4 ? '\x88' : 0);
  m.scales.assign(static_cast<size_t>(kernels::scale_bytes(small.dtype, n, k)), 0);
  m.tensor = {m.data.data(), m.scales.empty() ? nullptr : m.scales.data(), n, k, 0, small.dtype, Layout::panel16};
  std::vector<Unit> templates;
  for (int64_t r = 0; r < small.rows; ++r) templates.push_back(loudest(small, r, unit));
  const auto make_row = [&](int64_t r) {
    Random own = random.part(r);
    const int32_t row = rows[static_cast<size_t>(r)];
    const Unit& like = templates[static_cast<size_t>(row >= 0 ? row : r % small.rows)];
    for (size_t c = 0; c < columns.size(); ++c) {
      const int32_t column = columns[c];
      Unit u;
      if (column == kHot || (column >= 0 && row == kSilent)) u = zero(small.dtype, like, unit);
      else if (column >= 0 && row >= 0) read(small, row, int64_t{column} * unit, unit, &u);
      else u = noise(small.dtype, like, unit, own);
      write(m.tensor, r, static_cast<int64_t>(c) * unit, unit, u);
    }
  };
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t first; (first = next.fetch_add(kPanel)) < n;)
      for (int64_t r = first; r < std::min(first + kPanel, n); ++r) make_row(r);
  };
  std::vector<std::jthread> threads(n * k < kMuch ? 0 : std::min(std::thread::hardware_concurrency(), 16u));
  for (std::jthread& t : threads) t = std::jthread(work);
  work();
  threads.clear();
  return m;
}

std::vector<float> inflate_vector(const Tensor& small, const Map& places, float factor, float typical, Random random) {
  std::vector<float> out(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    const int32_t from = places[i];
    out[i] = from >= 0 ? static_cast<const float*>(small.data)[from] * factor
                       : from == kNoise ? (0.5f + random.uniform()) * typical : 0.0f;
  }
  return out;
}

}  // namespace aerie::inflate
