// u32 magic, u32 version, u64 tensors, u64 values; the values (key, type, value); of each tensor name, dimensions (the
// fastest first), type, offset; then the tensors, aligned. Little endian, strings are a u64 length and bytes.
#include "core/import/gguf_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace aerie {

namespace {
constexpr uint64_t kMaxValues = 1 << 16, kMaxTensors = 1 << 20, kMaxName = 1 << 10, kMaxAlignment = 1 << 20;
constexpr int kItemBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <class T>
T load(const uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
}  // namespace

// What does not fit into the file is not read: take() gives an empty span and ok() says so.
class GgufFile::Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : all_(bytes) {}
  bool ok() const { return ok_; }
  uint64_t at() const { return at_; }
  uint64_t left() const { return all_.size() - at_; }
  std::span<const uint8_t> take(uint64_t n) {
    if (n > left()) ok_ = false;
    if (!ok_) return {};
    at_ += n;
    return all_.subspan(at_ - n, n);
  }
  template <class T>
  T number() {
    const auto bytes = take(sizeof(T));
    return ok_ ? load<T>(bytes.data()) : T{};
  }
  std::string_view string() {
    const auto bytes = take(number<uint64_t>());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

 private:
  std::span<const uint8_t> all_;
  uint64_t at_ = 0;
  bool ok_ = true;
};

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path) {
  std::unique_ptr<GgufFile> file(new GgufFile(path));
  AERIE_ASSIGN(file->file_, platform::MappedFile::open(path));
  AERIE_TRY(file->parse());
  return file;
}

Status GgufFile::parse() {
  Reader in(file_->bytes());
  in.take(4);  // the magic, by which it was recognised
  const auto version = in.number<uint32_t>();
  if (version == 0x02000000 || version == 0x03000000) return error(Code::unsupported, path_ + ": GGUF of a big-endian machine");
  if (in.ok() && version != 2 && version != 3)
    return error(Code::unsupported, path_ + ": GGUF version " + std::to_string(version) + " (2 and 3 are read)");
  const auto tensors = in.number<uint64_t>(), values = in.number<uint64_t>();
  if (!in.ok() || tensors > kMaxTensors || values > kMaxValues)
    return bad("GGUF header: " + std::to_string(tensors) + " tensors and " + std::to_string(values) + " values (truncated?)");
  for (uint64_t i = 0; i < values; ++i) {
    const std::string_view key = in.string();
    if (!in.ok() || key.empty() || key.size() > kMaxName) return bad("GGUF value " + std::to_string(i) + ": its key (truncated?)");
    Value value;
    if (const Status s = read_value(in, &value); !s.ok()) return s.at(path_ + ": " + std::string(key));
    if (!values_.emplace(key, value).second) return bad(std::string(key) + ": is there twice");
  }
  return read_tensors(in, tensors);
}

Status GgufFile::read_value(Reader& in, Value* value) const {
  auto kind = in.number<uint32_t>();
  if (kind == static_cast<uint32_t>(Kind::array)) {
    value->array = true;
    kind = in.number<uint32_t>();
    value->count = in.number<uint64_t>();
  }
  if (!in.ok() || kind > static_cast<uint32_t>(Kind::f64) || kind == static_cast<uint32_t>(Kind::array))
    return error(in.ok() ? Code::unsupported : Code::bad_format, in.ok() ? "type " + std::to_string(kind) : "truncated");
  value->kind = static_cast<Kind>(kind);
  if (value->kind == Kind::string) {
    Reader ahead = in;
    for (uint64_t i = 0; i < value->count && ahead.ok(); ++i) ahead.string();
    if (!ahead.ok()) return error(Code::bad_format, "truncated");
    value->bytes = in.take(ahead.at() - in.at());
    return {};
  }
  const auto bytes = static_cast<uint64_t>(kItemBytes[kind]);
  if (value->count > in.left() / bytes) return error(Code::bad_format, std::to_string(value->count) + " items (truncated?)");
  value->bytes = in.take(value->count * bytes);
  return {};
}

Status GgufFile::read_tensors(Reader& in, uint64_t count) {
  struct Place {
    uint64_t offset, bytes;
    Located* at;
    const std::string* name;
  };
  std::vector<Place> places;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string name(in.string());
    if (!in.ok() || name.empty() || name.size() > kMaxName) return bad("tensor " + std::to_string(i) + ": its name (truncated?)");
    const std::string tensor = "tensor " + name + ": ";
    const auto dimensions = in.number<uint32_t>();
    if (!in.ok() || dimensions < 1 || dimensions > 4) return bad(tensor + std::to_string(dimensions) + " dimensions");
    SourceTensor shape;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < dimensions; ++d) {
      const auto n = in.number<uint64_t>();
      if (n == 0 || n > (uint64_t{1} << 32) || elements > (uint64_t{1} << 40) / n) return bad(tensor + "shape: empty or absurd");
      elements *= n;
      shape.shape.insert(shape.shape.begin(), static_cast<int64_t>(n));
    }
    const auto type = in.number<uint32_t>();
    const auto offset = in.number<uint64_t>();
    if (!in.ok()) return bad(tensor + "truncated");
    Located at;
    at.type = gguf_type(type);
    if (!at.type) return error(Code::unsupported, path_ + ": " + tensor + "type " + std::to_string(type) + " is not known");
    shape.stored = at.type->stored;
    if (shape.shape.back() % at.type->elements != 0)
      return bad(tensor + std::to_string(shape.shape.back()) + " columns are not whole blocks of " + at.type->name);
    const auto bytes = elements / static_cast<uint64_t>(at.type->elements) * static_cast<uint64_t>(at.type->bytes);
    const auto [place, fresh] = located_.emplace(name, at);
    if (!fresh) return bad(tensor + "is there twice");
    tensors_.emplace(name, std::move(shape));
    places.push_back({offset, bytes, &place->second, &place->first});
  }
  int32_t alignment = 32;
  AERIE_TRY(integer("general.alignment", &alignment, 32));
  const auto step = static_cast<uint64_t>(alignment);
  if (alignment < 1 || step > kMaxAlignment || !std::has_single_bit(step))
    return bad("general.alignment: " + std::to_string(alignment));
  const uint64_t data = (in.at() + step - 1) / step * step;
  const auto all = file_->bytes();
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.offset < b.offset; });
  uint64_t end = 0;
  for (const Place& p : places) {
    if (p.offset % step != 0 || p.offset < end) return bad("tensor " + *p.name + ": offset " + std::to_string(p.offset));
    if (data > all.size() || p.offset > all.size() - data || p.bytes > all.size() - data - p.offset)
      return bad("tensor " + *p.name + ": its data are outside the file (truncated?)");
    p.at->data = all.data() + data + p.offset;
    end = p.offset + p.bytes;
  }
  return {};
}

bool GgufFile::same(const std::string& a, const std::string& b) const {
  const auto x = located_.find(a), y = located_.find(b);
  if (x == located_.end() || y == located_.end() || x->second.type != y->second.type || tensors_.at(a).shape != tensors_.at(b).shape)
    return false;
  const GgufType& type = *x->second.type;
  return std::memcmp(x->second.data, y->second.data, static_cast<size_t>(tensors_.at(a).elements() / type.elements * type.bytes)) == 0;
}

std::vector<uint8_t> GgufFile::raw(const std::string& prefix) const {
  std::vector<uint8_t> all;
  for (auto it = values_.lower_bound(prefix); it != values_.end() && it->first.starts_with(prefix); ++it) {
    all.insert(all.end(), it->first.begin(), it->first.end());
    all.push_back(0);
    all.insert(all.end(), it->second.bytes.begin(), it->second.bytes.end());
  }
  return all;
}

Result<std::vector<float>> GgufFile::read(const std::string& tensor, int64_t first, int64_t n) const {
  const Located& at = located_.at(tensor);
  if (!at.type->read)
    return error(Code::unsupported, path_ + ": tensor " + tensor + ": type " + at.type->name +
                                        " (F32, F16, BF16, Q8_0, Q6_K, Q5_K, Q5_1, Q5_0, Q4_K, Q4_1, Q4_0 and MXFP4 are read)");
  const int64_t of_block = at.type->elements;
  if (first % of_block || n % of_block) return bad("tensor " + tensor + ": a part of a block");
  std::vector<float> out(static_cast<size_t>(n));
  at.type->read(at.data + first / of_block * at.type->bytes, n / of_block, out.data());
  if (!std::all_of(out.begin(), out.end(), [](float v) { return std::isfinite(v); }))
    return bad("tensor " + tensor + ": a value is not finite");
  return out;
}

Result<std::vector<int64_t>> GgufFile::read_integers(const std::string& tensor) const {
  return error(Code::unsupported, path_ + ": tensor " + tensor + ": integers are not read");
}

Result<const GgufFile::Value*> GgufFile::find(const std::string& key, bool array) const {
  const auto it = values_.find(key);
  if (it == values_.end()) return bad(key + ": is missing");
  if (it->second.array != array) return bad(key + (array ? ": is not a list" : ": is a list"));
  return &it->second;
}

Result<int64_t> GgufFile::whole(const std::string& key, const Value& v, uint64_t item) const {
  const uint8_t* p = v.bytes.data() + item * static_cast<uint64_t>(kItemBytes[static_cast<int>(v.kind)]);
  switch (v.kind) {
    case Kind::u8: return int64_t{*p};
    case Kind::i8: return int64_t{static_cast<int8_t>(*p)};
    case Kind::u16: return int64_t{load<uint16_t>(p)};
    case Kind::i16: return int64_t{load<int16_t>(p)};
    case Kind::u32: return int64_t{load<uint32_t>(p)};
    case Kind::i32: return int64_t{load<int32_t>(p)};
    case Kind::u64: return static_cast<int64_t>(std::min<uint64_t>(load<uint64_t>(p), INT64_MAX));
    case Kind::i64: return load<int64_t>(p);
    default: return bad(key + ": is not an integer");
  }
}

Status GgufFile::integer(const std::string& key, int32_t* out) const {
  AERIE_ASSIGN(const Value* const v, find(key, false));
  AERIE_ASSIGN(const int64_t value, whole(key, *v, 0));
  if (value == UINT32_MAX && key.ends_with("_token_id")) return *out = -1, Status();  // "none", as llama.cpp has it
  if (value != static_cast<int32_t>(value)) return bad(key + ": " + std::to_string(value) + " is not a 32-bit integer");
  *out = static_cast<int32_t>(value);
  return {};
}

Status GgufFile::integer(const std::string& key, int32_t* out, int32_t fallback) const {
  *out = fallback;
  return has(key) ? integer(key, out) : Status();
}

Status GgufFile::number(const std::string& key, float* out) const {
  AERIE_ASSIGN(const Value* const v, find(key, false));
  if (v->kind == Kind::f32) *out = load<float>(v->bytes.data());
  else if (v->kind == Kind::f64) *out = static_cast<float>(load<double>(v->bytes.data()));
  else return bad(key + ": is not a fraction");
  return std::isfinite(*out) ? Status() : bad(key + ": is not finite");
}

Status GgufFile::number(const std::string& key, float* out, float fallback) const {
  *out = fallback;
  return has(key) ? number(key, out) : Status();
}

Status GgufFile::boolean(const std::string& key, bool* out, bool fallback) const {
  *out = fallback;
  if (!has(key)) return {};
  AERIE_ASSIGN(const Value* const v, find(key, false));
  if (v->kind != Kind::boolean) return bad(key + ": is neither true nor false");
  *out = v->bytes[0] != 0;
  return {};
}

Status GgufFile::text(const std::string& key, std::string_view* out) const {
  AERIE_ASSIGN(const Value* const v, find(key, false));
  if (v->kind != Kind::string) return bad(key + ": is not a text");
  *out = Reader(v->bytes).string();
  return {};
}

Result<std::vector<std::string_view>> GgufFile::texts(const std::string& key) const {
  AERIE_ASSIGN(const Value* const v, find(key, true));
  if (v->kind != Kind::string) return bad(key + ": is not a list of texts");
  std::vector<std::string_view> all;
  all.reserve(v->count);  // each has eight bytes at least in the file
  Reader in(v->bytes);
  for (uint64_t i = 0; i < v->count; ++i) all.push_back(in.string());
  return all;
}

Result<std::vector<int32_t>> GgufFile::integers(const std::string& key) const {
  AERIE_ASSIGN(const Value* const v, find(key, true));
  std::vector<int32_t> all;
  all.reserve(v->count);
  for (uint64_t i = 0; i < v->count; ++i) {
    AERIE_ASSIGN(const int64_t value, whole(key, *v, i));
    if (value != static_cast<int32_t>(value)) return bad(key + ": " + std::to_string(value) + " is not a 32-bit integer");
    all.push_back(static_cast<int32_t>(value));
  }
  return all;
}

Result<std::vector<bool>> GgufFile::booleans(const std::string& key) const {
  AERIE_ASSIGN(const Value* const v, find(key, true));
  std::vector<bool> all;
  for (uint64_t i = 0; i < v->count; ++i) {
    if (v->kind == Kind::boolean) {
      all.push_back(v->bytes[i] != 0);
      continue;
    }
    AERIE_ASSIGN(const int64_t value, whole(key, *v, i));
    all.push_back(value != 0);
  }
  return all;
}

Result<std::vector<float>> GgufFile::numbers(const std::string& key) const {
  AERIE_ASSIGN(const Value* const v, find(key, true));
  if (v->kind != Kind::f32) return bad(key + ": is not a list of fractions");
  std::vector<float> all(v->count);
  if (v->count > 0) std::memcpy(all.data(), v->bytes.data(), v->bytes.size());
  return all;
}

}  // namespace aerie
