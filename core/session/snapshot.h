// Snapshot: a saved session as bytes (docs/session-format.md). Encoding leaves room for what comes from a device;
// decoding checks every field, and keys and values stay where they are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/kv/kv_pool.h"

namespace aerie {

// All that the bits of keys and values depend on.
struct SnapshotKey {
  std::string version, device, isa, model, weights;
};

// Keys and values of positions [0, positions): kv_image.h says in which order. No layers: none are kept.
struct SavedKv {
  KvShape shape;
  int64_t positions = 0;
  const uint8_t* data = nullptr;  // decoded: in the snapshot's bytes
  int64_t bytes() const { return positions * shape.bytes_per_slot(); }
};

constexpr int64_t kMaxSavedWaiting = 128;  // rows of features, of a drafter

struct SavedDrafter {
  std::string plugin, package, weights;
  int64_t first = 0, observed = 0;  // it has seen tokens [first, observed)
  SavedKv kv;
  int64_t waiting = 0;          // rows of features that it has not seen yet
  int64_t feature_cols = 0;
  const uint8_t* features = nullptr;  // (waiting, feature_cols) f32, not aligned
  int64_t feature_bytes() const { return waiting * feature_cols * int64_t{sizeof(float)}; }
  bool away = false;            // it rests
  std::string policy;           // whose memory it is, and for what kind of drafts; empty: there is none
  std::vector<double> memory;
};

enum class SavedFinish : uint32_t { none = 0, eos = 1, stop_token = 2, stop_string = 3 };

constexpr int32_t kMaxStopBytes = 1 << 20;

struct Snapshot {
  SnapshotKey key;
  std::vector<int32_t> text;
  int64_t generated_from = 0;  // first token of the running generation
  SavedFinish finish = SavedFinish::none;
  int32_t stop_bytes = 0;      // 1 .. kMaxStopBytes of a stop string, else 0
  SavedKv kv;
  int64_t state_floats = 0;          // of recurrent layers, after kv.positions rows; 0: none is kept
  const uint8_t* state = nullptr;    // decoded: in the snapshot's bytes, not aligned
  double cycle_tokens = 0, cycle_passes = 0;  // lately, where several drafters are chosen from
  std::vector<SavedDrafter> drafters;
};

// Where a device's bytes go.
struct SnapshotRooms {
  struct Draft {
    uint8_t *kv = nullptr, *features = nullptr;
  };
  uint8_t *kv = nullptr, *state = nullptr;
  std::vector<Draft> drafters;
};

size_t encoded_size(const Snapshot& s);
// All but the rooms and the checksum, into encoded_size(s) bytes.
SnapshotRooms encode_snapshot(const Snapshot& s, std::span<uint8_t> out);
void seal_snapshot(std::span<uint8_t> bytes);  // the checksum, once the rooms are filled

// `bytes` must outlive the result. bad_format (unsupported for another version) names the field.
Result<Snapshot> decode_snapshot(std::span<const uint8_t> bytes);

}  // namespace aerie
