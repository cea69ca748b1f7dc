// libFuzzer: the body of a saved session under a header and checksum that fit, and the bytes as they are. What is accepted
// is written again as it was.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/snapshot_fuzz.cc
//     core/session/snapshot.cc -lxxhash -o snapshot_fuzz
#include <cstdlib>
#include <cstring>

#include "core/session/snapshot.h"

namespace {

using Bytes = std::vector<uint8_t>;

void use(const Bytes& bytes) {
  const auto s = aerie::decode_snapshot(bytes);
  if (!s.ok()) {
    if (s.status().message().empty()) std::abort();
    return;
  }
  Bytes again(aerie::encoded_size(*s));
  if (again.size() != bytes.size()) std::abort();
  const aerie::SnapshotRooms rooms = aerie::encode_snapshot(*s, again);
  const auto fill = [](uint8_t* room, const uint8_t* data, int64_t n) {
    if (n > 0) std::memcpy(room, data, static_cast<size_t>(n));  // reads all of what a device would be given
  };
  fill(rooms.kv, s->kv.data, s->kv.bytes());
  for (size_t i = 0; i < s->drafters.size(); ++i) {
    fill(rooms.drafters[i].kv, s->drafters[i].kv.data, s->drafters[i].kv.bytes());
    fill(rooms.drafters[i].features, s->drafters[i].features, s->drafters[i].feature_bytes());
  }
  aerie::seal_snapshot(again);
  // The reserved word is written as 0.
  if (std::memcmp(again.data() + 16, bytes.data() + 16, again.size() - 16 - 8) != 0) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  use(Bytes(data, data + size));
  constexpr size_t kHeader = 24, kHash = 8;
  Bytes file(aerie::encoded_size({}));
  (void)aerie::encode_snapshot({}, file);  // for its magic and version
  file.resize(kHeader);
  file.insert(file.end(), data, data + size);
  file.resize(file.size() + kHash);
  for (size_t i = 0; i < 8; ++i) file[16 + i] = static_cast<uint8_t>(uint64_t{file.size()} >> (8 * i));
  aerie::seal_snapshot(file);
  use(file);
  return 0;
}
