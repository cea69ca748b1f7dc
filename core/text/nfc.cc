#include "core/text/nfc.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

struct Decomposition {
  uint32_t codepoint;
  uint16_t offset;
  uint8_t length;
};
struct Composition {
  uint32_t first, second, composed;
};
struct CombiningRun {
  uint32_t first, last;
  uint8_t combining;
};

#include "core/text/nfc_tables.inc"

// Hangul syllables are arithmetic (Unicode 16, section 3.12).
constexpr uint32_t kSBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr uint32_t kLCount = 19, kVCount = 21, kTCount = 28, kSCount = kLCount * kVCount * kTCount;

struct Unit {
  uint32_t codepoint;
  uint8_t combining;
};

uint8_t combining_class(uint32_t c) {
  const auto* run = std::lower_bound(std::begin(kCombining), std::end(kCombining), c,
                                     [](const CombiningRun& r, uint32_t value) { return r.last < value; });
  return run != std::end(kCombining) && run->first <= c ? run->combining : 0;
}

void decompose(uint32_t c, std::vector<Unit>* out) {
  if (c - kSBase < kSCount) {
    const uint32_t s = c - kSBase;
    out->push_back({kLBase + s / (kVCount * kTCount), 0});
    out->push_back({kVBase + s % (kVCount * kTCount) / kTCount, 0});
    if (s % kTCount != 0) out->push_back({kTBase + s % kTCount, 0});
    return;
  }
  const auto* d = std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                                   [](const Decomposition& x, uint32_t value) { return x.codepoint < value; });
  if (d == std::end(kDecompositions) || d->codepoint != c) {
    out->push_back({c, combining_class(c)});
    return;
  }
  for (int i = 0; i < d->length; ++i) {
    const uint32_t part = kDecompositionPool[d->offset + i];
    out->push_back({part, combining_class(part)});
  }
}

// 0: the pair does not compose.
uint32_t compose(uint32_t a, uint32_t b) {
  if (a - kLBase < kLCount && b - kVBase < kVCount) {
    return kSBase + ((a - kLBase) * kVCount + (b - kVBase)) * kTCount;
  }
  if (a - kSBase < kSCount && (a - kSBase) % kTCount == 0 && b > kTBase && b - kTBase < kTCount) {
    return a + (b - kTBase);
  }
  const auto* pair = std::lower_bound(std::begin(kCompositions), std::end(kCompositions), Composition{a, b, 0},
                                      [](const Composition& x, const Composition& y) {
                                        return x.first != y.first ? x.first < y.first : x.second < y.second;
                                      });
  return pair != std::end(kCompositions) && pair->first == a && pair->second == b ? pair->composed : 0;
}

}  // namespace

std::string nfc(std::string_view utf8) {
  std::vector<Unit> units;
  bool plain = true;  // nothing below U+0300 changes under NFC
  for (size_t i = 0; i < utf8.size();) {
    const Utf8Step step = utf8_step(utf8.substr(i));
    plain = plain && step.codepoint < 0x300;
    i += step.length;
  }
  if (plain) return std::string(utf8);
  for (size_t i = 0; i < utf8.size();) {
    const Utf8Step step = utf8_step(utf8.substr(i));
    decompose(step.codepoint, &units);
    i += step.length;
  }
  // Canonical order: runs of combining marks, stably by class.
  for (size_t i = 0; i < units.size();) {
    if (units[i].combining == 0) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < units.size() && units[end].combining != 0) ++end;
    std::stable_sort(units.begin() + i, units.begin() + end,
                     [](const Unit& a, const Unit& b) { return a.combining < b.combining; });
    i = end;
  }
  std::vector<Unit> composed;
  size_t starter = SIZE_MAX;  // the last starter in `composed`
  for (const Unit& unit : units) {
    if (starter != SIZE_MAX) {
      // Blocked if a mark between has no lower class than this one (or a starter stands between).
      const bool adjacent = composed.size() == starter + 1;
      if (adjacent || (composed.back().combining != 0 && composed.back().combining < unit.combining)) {
        if (const uint32_t c = compose(composed[starter].codepoint, unit.codepoint)) {
          composed[starter].codepoint = c;
          continue;
        }
      }
    }
    if (unit.combining == 0) starter = composed.size();
    composed.push_back(unit);
  }
  std::string out;
  out.reserve(utf8.size());
  for (const Unit& unit : composed) utf8_append(unit.codepoint, &out);
  return out;
}

}  // namespace aerie::text
