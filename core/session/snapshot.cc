#include "core/session/snapshot.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace aerie {

namespace {

constexpr uint8_t kMagic[8] = {'A', 'E', 'R', 'I', 'E', 'S', '\n', 0x1A};
constexpr uint32_t kVersion = 10;
constexpr size_t kHeader = 24, kHash = 8;
constexpr uint32_t kMaxString = 1024, kMaxDimension = 1u << 12, kMaxDrafters = 64, kMaxMemory = 1u << 16;
constexpr int64_t kMaxTokens = int64_t{1} << 31;
constexpr int64_t kMaxFeatureCols = int64_t{1} << 24;

Status bad(const std::string& field, const std::string& what) { return error(Code::bad_format, field + ": " + what); }

// Little endian. Without memory it only counts.
class Writer {
 public:
  explicit Writer(uint8_t* out) : out_(out) {}
  size_t size() const { return size_; }
  void number(uint64_t v, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
      if (uint8_t* at = room(1)) *at = static_cast<uint8_t>(v >> (8 * i));
  }
  void u32(uint64_t v) { number(v, 4); }
  void u64(int64_t v) { number(static_cast<uint64_t>(v), 8); }
  void f64(double v) { number(std::bit_cast<uint64_t>(v), 8); }
  void string(const std::string& s) {
    u32(s.size());
    if (uint8_t* at = room(s.size())) std::copy(s.begin(), s.end(), at);
  }
  uint8_t* room(size_t n) {
    uint8_t* at = out_ ? out_ + size_ : nullptr;
    size_ += n;
    return at;
  }

 private:
  uint8_t* out_;
  size_t size_ = 0;
};

uint8_t* write_kv(Writer& w, const SavedKv& kv) {
  for (const KvLayers& l : {kv.shape.most(), kv.shape.wide})
    for (const int32_t n : {l.layers, l.kv_heads, l.head_dim}) w.u32(static_cast<uint32_t>(n));
  w.u32(static_cast<uint32_t>(kv.shape.dtype));
  w.u64(kv.positions);
  return w.room(static_cast<size_t>(kv.bytes()));
}

SnapshotRooms write(Writer& w, const Snapshot& s, size_t size) {
  SnapshotRooms rooms;
  for (const uint8_t b : kMagic) w.number(b, 1);
  w.u32(kVersion);
  w.u32(0);
  w.u64(static_cast<int64_t>(size));
  for (const std::string* field : {&s.key.version, &s.key.device, &s.key.isa, &s.key.model, &s.key.weights})
    w.string(*field);
  w.u64(static_cast<int64_t>(s.text.size()));
  for (const int32_t t : s.text) w.u32(static_cast<uint32_t>(t));
  w.u64(s.generated_from);
  w.u32(static_cast<uint32_t>(s.finish));
  w.u32(static_cast<uint32_t>(s.stop_bytes));
  rooms.kv = write_kv(w, s.kv);
  w.u64(s.state_floats);
  rooms.state = w.room(static_cast<size_t>(s.state_floats) * sizeof(float));
  w.f64(s.cycle_tokens);
  w.f64(s.cycle_passes);
  w.u32(s.drafters.size());
  for (const SavedDrafter& d : s.drafters) {
    SnapshotRooms::Draft& room = rooms.drafters.emplace_back();
    for (const std::string* field : {&d.plugin, &d.package, &d.weights}) w.string(*field);
    w.u64(d.first);
    w.u64(d.observed);
    room.kv = write_kv(w, d.kv);
    w.u64(d.waiting);
    w.u64(d.feature_cols);
    room.features = w.room(static_cast<size_t>(d.feature_bytes()));
    w.u32(d.away ? 1 : 0);
    w.string(d.policy);
    w.u32(d.memory.size());
    for (const double v : d.memory) w.f64(v);
  }
  w.number(0, kHash);
  return rooms;
}

// Bounded: a field that does not fit in what is left is an error that names it.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : left_(bytes) {}
  size_t left() const { return left_.size(); }
  Result<const uint8_t*> take(const char* field, uint64_t n) {
    if (n > left_.size())
      return bad(field, std::to_string(n) + " bytes, " + std::to_string(left_.size()) + " are left");
    const uint8_t* at = left_.data();
    left_ = left_.subspan(static_cast<size_t>(n));
    return at;
  }
  Status number(const char* field, size_t bytes, uint64_t most, uint64_t* out) {
    AERIE_ASSIGN(const uint8_t* const at, take(field, bytes));
    *out = 0;
    for (size_t i = 0; i < bytes; ++i) *out |= uint64_t{at[i]} << (8 * i);
    return *out <= most ? Status() : bad(field, std::to_string(*out) + ", the most is " + std::to_string(most));
  }
  Status u32(const char* field, uint32_t most, uint32_t* out) {
    uint64_t v = 0;
    AERIE_TRY(number(field, 4, most, &v));
    *out = static_cast<uint32_t>(v);
    return {};
  }
  Status i32(const char* field, uint32_t most, int32_t* out) {
    uint32_t v = 0;
    AERIE_TRY(u32(field, most, &v));
    *out = static_cast<int32_t>(v);
    return {};
  }
  Status i64(const char* field, int64_t most, int64_t* out) {
    uint64_t v = 0;
    AERIE_TRY(number(field, 8, static_cast<uint64_t>(most), &v));
    *out = static_cast<int64_t>(v);
    return {};
  }
  Status f64(const char* field, double* out) {
    uint64_t v = 0;
    AERIE_TRY(number(field, 8, UINT64_MAX, &v));
    *out = std::bit_cast<double>(v);
    return std::isfinite(*out) ? Status() : bad(field, "is no number");
  }
  Status string(const char* field, std::string* out) {
    uint32_t n = 0;
    AERIE_TRY(u32(field, kMaxString, &n));
    AERIE_ASSIGN(const uint8_t* const at, take(field, n));
    out->assign(at, at + n);
    // It may be shown in a message.
    return std::all_of(out->begin(), out->end(), [](char c) { return c >= ' ' && c <= '~'; })
               ? Status() : bad(field, "is not printable");
  }

 private:
  std::span<const uint8_t> left_;
};

Status read_kv(Reader& r, const char* field, SavedKv* kv) {
  const std::string in = field;
  uint32_t dtype = 0;
  KvShape& s = kv->shape;
  const auto layers = [&](const std::string& kind, int32_t* count, int32_t* heads, int32_t* dim) -> Status {
    AERIE_TRY(r.i32((in + kind + " layers").c_str(), kMaxDimension, count));
    AERIE_TRY(r.i32((in + kind + " heads").c_str(), kMaxDimension, heads));
    return r.i32((in + kind + " head_dim").c_str(), kMaxDimension, dim);
  };
  AERIE_TRY(layers("", &s.layers, &s.kv_heads, &s.head_dim));
  AERIE_TRY(layers(" wide", &s.wide.layers, &s.wide.kv_heads, &s.wide.head_dim));
  AERIE_TRY(r.u32((in + " dtype").c_str(), static_cast<uint32_t>(kernels::DType::int8), &dtype));
  s.dtype = static_cast<kernels::DType>(dtype);
  AERIE_TRY(r.i64((in + " positions").c_str(), kMaxTokens, &kv->positions));
  const int64_t each = s.bytes_per_slot();
  if (kv->positions > 0 && each == 0) return bad(in + " positions", "of nothing");
  if (kv->positions > 0 && static_cast<uint64_t>(kv->positions) > r.left() / static_cast<uint64_t>(each))
    return bad(in + " positions", std::to_string(kv->positions) + ", more than the file holds");
  AERIE_ASSIGN(kv->data, r.take(field, static_cast<uint64_t>(kv->bytes())));
  return {};
}

Status read_drafter(Reader& r, const Snapshot& s, SavedDrafter* d) {
  const auto size = static_cast<int64_t>(s.text.size());
  AERIE_TRY(r.string("drafter", &d->plugin));
  AERIE_TRY(r.string("drafter package", &d->package));
  AERIE_TRY(r.string("drafter weights", &d->weights));
  const int64_t next = s.kv.positions + 1;
  AERIE_TRY(r.i64("drafter first", next, &d->first));
  AERIE_TRY(r.i64("drafter observed", next, &d->observed));
  const auto disagrees = [&] {
    return bad("drafter observed", std::to_string(d->first) + " to " + std::to_string(d->observed) + " does not agree with the text");
  };
  if (d->first > d->observed) return disagrees();
  AERIE_TRY(read_kv(r, "drafter kv", &d->kv));
  if (d->kv.positions > d->observed - d->first) return bad("drafter kv positions", "more than it has observed");
  AERIE_TRY(r.i64("features", kMaxSavedWaiting, &d->waiting));
  AERIE_TRY(r.i64("feature columns", kMaxFeatureCols, &d->feature_cols));
  AERIE_ASSIGN(d->features, r.take("features", static_cast<uint64_t>(d->feature_bytes())));
  // The newest row is always shown again, or its features are here: it answers for the root. What waits follows what was
  // seen, or nothing was and it begins anew with these.
  const bool anew = d->first == d->observed;
  if (d->waiting > 0 ? d->observed + d->waiting > next || (!anew && d->observed + d->waiting < next)
                     : d->observed > std::max<int64_t>(1, size - 1))
    return disagrees();
  uint32_t away = 0, numbers = 0;
  AERIE_TRY(r.u32("drafter away", 1, &away));
  d->away = away != 0;
  AERIE_TRY(r.string("policy", &d->policy));
  AERIE_TRY(r.u32("policy memory", static_cast<uint32_t>(std::min<size_t>(r.left() / 8, kMaxMemory)), &numbers));
  if (d->policy.empty() != (numbers == 0)) return bad("policy memory", std::to_string(numbers) + " numbers of \"" + d->policy + "\"");
  d->memory.resize(numbers);
  for (double& v : d->memory) AERIE_TRY(r.f64("policy memory", &v));
  return {};
}

Status read_body(Reader& r, Snapshot* s) {
  AERIE_TRY(r.string("version of the build", &s->key.version));
  AERIE_TRY(r.string("device", &s->key.device));
  AERIE_TRY(r.string("isa", &s->key.isa));
  AERIE_TRY(r.string("model", &s->key.model));
  AERIE_TRY(r.string("weights", &s->key.weights));
  int64_t n = 0;
  AERIE_TRY(r.i64("tokens", std::min<int64_t>(kMaxTokens, static_cast<int64_t>(r.left() / 4)), &n));
  s->text.resize(static_cast<size_t>(n));
  for (int32_t& t : s->text) AERIE_TRY(r.i32("token", INT32_MAX, &t));
  AERIE_TRY(r.i64("generated from", n, &s->generated_from));
  uint32_t finish = 0, drafters = 0;
  AERIE_TRY(r.u32("finish", static_cast<uint32_t>(SavedFinish::stop_string), &finish));
  s->finish = static_cast<SavedFinish>(finish);
  // A host cuts as many from what it shows.
  AERIE_TRY(r.i32("stop bytes", kMaxStopBytes, &s->stop_bytes));
  if ((s->stop_bytes > 0) != (s->finish == SavedFinish::stop_string))
    return bad("stop bytes", std::to_string(s->stop_bytes) + " of a text that " + (s->stop_bytes > 0 ? "has met no" : "ended with a") + " stop string");
  AERIE_TRY(read_kv(r, "kv", &s->kv));
  if (s->kv.positions > std::max<int64_t>(0, n - 1)) return bad("kv positions", "more than the text has");
  AERIE_TRY(r.i64("state", static_cast<int64_t>(r.left() / sizeof(float)), &s->state_floats));
  if (s->state_floats > 0 && s->kv.positions == 0) return bad("state", "of nothing");
  AERIE_ASSIGN(s->state, r.take("state", static_cast<uint64_t>(s->state_floats) * sizeof(float)));
  for (double* rate : {&s->cycle_tokens, &s->cycle_passes}) {
    AERIE_TRY(r.f64("cycle rate", rate));
    if (*rate < 0) return bad("cycle rate", "is negative");
  }
  AERIE_TRY(r.u32("drafters", kMaxDrafters, &drafters));
  for (; drafters > 0; --drafters) AERIE_TRY(read_drafter(r, *s, &s->drafters.emplace_back()));
  return r.left() == 0 ? Status() : bad("end", std::to_string(r.left()) + " bytes follow the last field");
}

}  // namespace

size_t encoded_size(const Snapshot& s) {
  Writer w(nullptr);
  (void)write(w, s, 0);
  return w.size();
}

SnapshotRooms encode_snapshot(const Snapshot& s, std::span<uint8_t> out) {
  Writer w(out.data());
  return write(w, s, out.size());
}

void seal_snapshot(std::span<uint8_t> bytes) {
  const size_t n = bytes.size() - kHash;
  Writer(bytes.data() + n).number(XXH64(bytes.data(), n, 0), kHash);
}

Result<Snapshot> decode_snapshot(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof kMagic || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return bad("magic", "this is not a saved session");
  Reader header(bytes.subspan(sizeof kMagic));
  uint32_t version = 0, reserved = 0;
  uint64_t length = 0, hash = 0;
  AERIE_TRY(header.u32("format version", UINT32_MAX, &version));
  if (version != kVersion)  // first: another version may lay out the rest differently
    return error(Code::unsupported, "format version: " + std::to_string(version) + ", this build reads " +
                                        std::to_string(kVersion));
  if (bytes.size() < kHeader + kHash) return bad("length", std::to_string(bytes.size()) + " bytes, too few");
  AERIE_TRY(header.u32("reserved", UINT32_MAX, &reserved));
  AERIE_TRY(header.number("length", 8, UINT64_MAX, &length));
  if (length != bytes.size())
    return bad("length", std::to_string(bytes.size()) + " bytes, it was saved with " + std::to_string(length));
  const size_t n = bytes.size() - kHash;
  AERIE_TRY(Reader(bytes.subspan(n)).number("checksum", kHash, UINT64_MAX, &hash));
  if (hash != XXH64(bytes.data(), n, 0)) return bad("checksum", "the bytes are damaged");
  Reader body(bytes.subspan(kHeader, n - kHeader));
  Snapshot s;
  AERIE_TRY(read_body(body, &s));
  return s;
}

}  // namespace aerie
