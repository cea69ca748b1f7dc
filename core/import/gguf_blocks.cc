#include "core/import/gguf_blocks.h"

#include <cstring>

#include "core/import/mxfp4_step.h"
#include "kernels/narrow_floats.h"

namespace aerie {

namespace {

uint16_t u16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
float half(const uint8_t* p) { return kernels::from_half(u16(p)); }

void f32(const uint8_t* p, int64_t n, float* out) { std::memcpy(out, p, static_cast<size_t>(n) * 4); }
void f16(const uint8_t* p, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = half(p + 2 * i);
}
void bf16(const uint8_t* p, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = kernels::from_bf16(u16(p + 2 * i));
}

// Blocks of 32. The low nibbles are the first half's.
void q8_0(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 34, out += 32) {
    const float d = half(p);
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(p[2 + i]));
  }
}
void q4_0(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 18, out += 32) {
    const float d = half(p);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((p[2 + i] & 15) - 8);
      out[i + 16] = d * static_cast<float>((p[2 + i] >> 4) - 8);
    }
  }
}
void q4_1(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 20, out += 32) {
    const float d = half(p), least = half(p + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(p[4 + i] & 15) + least;
      out[i + 16] = d * static_cast<float>(p[4 + i] >> 4) + least;
    }
  }
}
// The fifth bits of all 32 values, those of the first half first.
int fifth(const uint8_t* bits, int i) { return (bits[i / 8] >> (i % 8) & 1) << 4; }
void q5_0(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 22, out += 32) {
    const float d = half(p);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>(((p[6 + i] & 15) | fifth(p + 2, i)) - 16);
      out[i + 16] = d * static_cast<float>(((p[6 + i] >> 4) | fifth(p + 2, i + 16)) - 16);
    }
  }
}
void q5_1(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 24, out += 32) {
    const float d = half(p), least = half(p + 2);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * static_cast<float>((p[8 + i] & 15) | fifth(p + 4, i)) + least;
      out[i + 16] = d * static_cast<float>((p[8 + i] >> 4) | fifth(p + 4, i + 16)) + least;
    }
  }
}
// MXFP4: the scale, and E2M1 numbers.
void mxfp4(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 17, out += 32) {
    const float d = mxfp4_half(p[0]);
    for (int i = 0; i < 16; ++i) {
      out[i] = d * kMxfp4Halves[p[1 + i] & 15];
      out[i + 16] = d * kMxfp4Halves[p[1 + i] >> 4];
    }
  }
}

// Blocks of 256: eight groups of 32, each with a scale and a least value of six bits, packed into twelve bytes.
struct Group {
  float scale, least;
};
Group group_of(const uint8_t* p, const uint8_t* packed, int g) {
  const int scale = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | (packed[g - 4] >> 6) << 4;
  const int least = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | (packed[g] >> 6) << 4;
  return {half(p) * static_cast<float>(scale), half(p + 2) * static_cast<float>(least)};
}
void q4_k(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 144)
    for (int g = 0; g < 8; ++g) {
      const Group group = group_of(p, p + 4, g);
      const uint8_t* nibbles = p + 16 + 32 * (g / 2);
      for (int i = 0; i < 32; ++i)
        *out++ = group.scale * static_cast<float>(g % 2 ? nibbles[i] >> 4 : nibbles[i] & 15) - group.least;
    }
}
void q5_k(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 176)
    for (int g = 0; g < 8; ++g) {
      const Group group = group_of(p, p + 4, g);
      const uint8_t *high = p + 16, *nibbles = p + 48 + 32 * (g / 2);
      for (int i = 0; i < 32; ++i) {
        const int low = g % 2 ? nibbles[i] >> 4 : nibbles[i] & 15;
        *out++ = group.scale * static_cast<float>(low | (high[i] >> g & 1) << 4) - group.least;
      }
    }
}
// Two halves of 128, each of four rows of 32; a scale for every 16 values.
void q6_k(const uint8_t* p, int64_t n, float* out) {
  for (; n > 0; --n, p += 210)
    for (int part = 0; part < 8; ++part) {
      const int row = part % 4, side = part / 4;
      const uint8_t *low = p + 64 * side + 32 * (row % 2), *high = p + 128 + 32 * side;
      const float d = half(p + 208);
      for (int i = 0; i < 32; ++i) {
        const int four = row < 2 ? low[i] & 15 : low[i] >> 4;
        const int code = (four | (high[i] >> (2 * row) & 3) << 4) - 32;
        const auto scale = static_cast<int8_t>(p[192 + 8 * side + 2 * row + i / 16]);
        *out++ = d * static_cast<float>(scale) * static_cast<float>(code);
      }
    }
}

using kernels::DType;
constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, f32, DType::f32}, {1, "F16", 1, 2, f16, DType::bf16}, {30, "BF16", 1, 2, bf16, DType::bf16},
    {2, "Q4_0", 32, 18, q4_0, DType::int4}, {3, "Q4_1", 32, 20, q4_1, DType::q4_1}, {12, "Q4_K", 256, 144, q4_k, DType::q4_1},
    {6, "Q5_0", 32, 22, q5_0, DType::int8}, {7, "Q5_1", 32, 24, q5_1, DType::int8}, {13, "Q5_K", 256, 176, q5_k, DType::int8},
    {14, "Q6_K", 256, 210, q6_k, DType::int8}, {8, "Q8_0", 32, 34, q8_0, DType::int8},
    {10, "Q2_K", 256, 84, nullptr}, {11, "Q3_K", 256, 110, nullptr}, {16, "IQ2_XXS", 256, 66, nullptr}, {17, "IQ2_XS", 256, 74, nullptr},
    {18, "IQ3_XXS", 256, 98, nullptr}, {19, "IQ1_S", 256, 50, nullptr}, {20, "IQ4_NL", 32, 18, nullptr}, {21, "IQ3_S", 256, 110, nullptr},
    {22, "IQ2_S", 256, 82, nullptr}, {23, "IQ4_XS", 256, 136, nullptr}, {24, "I8", 1, 1, nullptr}, {25, "I16", 1, 2, nullptr},
    {26, "I32", 1, 4, nullptr}, {27, "I64", 1, 8, nullptr}, {28, "F64", 1, 8, nullptr}, {29, "IQ1_M", 256, 56, nullptr},
    {34, "TQ1_0", 256, 54, nullptr}, {35, "TQ2_0", 256, 66, nullptr}, {39, "MXFP4", 32, 17, mxfp4, DType::mxfp4},
};

}  // namespace

const GgufType* gguf_type(uint32_t id) {
  for (const GgufType& t : kTypes)
    if (t.id == id) return &t;
  return nullptr;
}

}  // namespace aerie
