// safetensors: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, data.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/import/json.h"
#include "core/import/lfs_pointer.h"
#include "core/import/pickle.h"
#include "core/import/source.h"
#include "core/platform/dynamic_library.h"
#include "core/platform/file.h"
#include "kernels/narrow_floats.h"

namespace aerie {

namespace {

constexpr uint64_t kMaxHeader = 100u << 20;  // the format's own cap
using nlohmann::json;

struct Format {
  const char* name;
  int bytes;  // an element
  kernels::DType stored = kernels::DType::f32;
};
// All that the format defines; only the first three are weights to us. A tensor of another kind is an error
// where it is asked for, or is unexpected like any other.
constexpr Format kFormats[] = {{"F32", 4}, {"F16", 2, kernels::DType::bf16}, {"BF16", 2, kernels::DType::bf16}, {"F64", 8}, {"I64", 8},
                               {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U8", 1},      {"U16", 2},
                               {"U32", 4}, {"U64", 8}, {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

struct Located {
  size_t file = 0;
  uint64_t begin = 0;  // in the file
  const Format* format = nullptr;
};

class SafetensorsSource final : public TensorSource {
 public:
  explicit SafetensorsSource(std::string name) : name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  const std::map<std::string, SourceTensor>& tensors() const override { return tensors_; }

  Status add_file(const std::string& path) {
    AERIE_ASSIGN(auto file, platform::MappedFile::open(path));
    if (Status s = add(*file); !s.ok()) return s.at(path);
    files_.push_back(std::move(file));
    return {};
  }

  Result<std::vector<int64_t>> read_integers(const std::string& tensor) const override {
    const Located& at = located_.at(tensor);
    const uint8_t* data = files_[at.file]->bytes().data() + at.begin;
    const std::string_view format = at.format->name;
    std::vector<int64_t> out(static_cast<size_t>(tensors_.at(tensor).elements()));
    for (size_t i = 0; i < out.size(); ++i) {
      if (format == "I64") {
        std::memcpy(&out[i], data + 8 * i, 8);
      } else if (format == "I32") {
        int32_t v;
        std::memcpy(&v, data + 4 * i, 4);
        out[i] = v;
      } else if (format == "BOOL") {
        out[i] = data[i] != 0;
      } else {
        return error(Code::unsupported, name_ + ": tensor " + tensor + ": dtype " + at.format->name + " (I64, I32 or BOOL is needed)");
      }
    }
    return out;
  }

  Result<std::span<const uint8_t>> bytes(const std::string& tensor) const override {
    const Located& at = located_.at(tensor);
    if (std::string_view(at.format->name) != "U8")
      return error(Code::unsupported, name_ + ": tensor " + tensor + ": dtype " + at.format->name + " (U8 is needed)");
    return files_[at.file]->bytes().subspan(at.begin, static_cast<size_t>(tensors_.at(tensor).elements()));
  }

  Result<std::vector<float>> read(const std::string& tensor, int64_t first, int64_t n) const override {
    const Located& at = located_.at(tensor);
    const uint8_t* data = files_[at.file]->bytes().data() + at.begin + first * at.format->bytes;
    const std::string_view format = at.format->name;
    std::vector<float> out(static_cast<size_t>(n));
    if (format == "F32") {
      std::memcpy(out.data(), data, out.size() * 4);
    } else if (format == "F16" || format == "BF16") {
      const bool bf16 = format == "BF16";
      for (size_t i = 0; i < out.size(); ++i) {
        uint16_t h;
        std::memcpy(&h, data + 2 * i, 2);
        out[i] = bf16 ? kernels::from_bf16(h) : kernels::from_half(h);
      }
    } else {
      return error(Code::unsupported,
                   name_ + ": tensor " + tensor + ": dtype " + at.format->name + " (F32, F16 and BF16 are read)");
    }
    if (!std::all_of(out.begin(), out.end(), [](float v) { return std::isfinite(v); }))
      return error(Code::bad_format, name_ + ": tensor " + tensor + ": a value is not finite");
    return out;
  }

 private:
  Status add(const platform::MappedFile& file) {
    const auto bytes = file.bytes();
    uint64_t header = 0;
    AERIE_TRY(refuse_lfs_pointer(bytes));
    if (bytes.size() < 8) return bad("header length: the file is too short");
    std::memcpy(&header, bytes.data(), 8);
    if (header > kMaxHeader || header > bytes.size() - 8)
      return bad("header length: " + std::to_string(header) + " (truncated, or not safetensors)");
    AERIE_ASSIGN(const auto document, parse_json(bytes.subspan(8, header)));
    const json& j = document.root();
    const uint64_t data = 8 + header, size = bytes.size() - data;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const auto& [name, entry] : j.items()) {
      if (name == "__metadata__") continue;
      SourceTensor shape;
      Located at{files_.size(), 0, nullptr};
      uint64_t begin = 0, end = 0;
      if (const Status s = read_entry(entry, size, &shape, &at, &begin, &end); !s.ok()) return s.at(name);
      at.begin = data + begin;
      ranges.emplace_back(begin, end);
      if (!tensors_.emplace(name, std::move(shape)).second) return bad(name + ": in two files");
      located_.emplace(name, at);
    }
    std::sort(ranges.begin(), ranges.end());
    uint64_t at = 0;
    for (const auto& [begin, end] : ranges) {
      if (begin != at) return bad("header: tensors overlap or leave holes");
      at = end;
    }
    if (at != size) return bad("header: " + std::to_string(size - at) + " bytes belong to no tensor");
    return {};
  }

  static Status bad(const std::string& what) { return error(Code::bad_format, what); }

  static Status read_entry(const json& t, uint64_t data_bytes, SourceTensor* shape, Located* at, uint64_t* begin,
                           uint64_t* end) {
    const auto is = [&](const char* key, json::value_t type) { return t.contains(key) && t[key].type() == type; };
    if (!t.is_object() || !is("dtype", json::value_t::string) || !is("shape", json::value_t::array) ||
        !is("data_offsets", json::value_t::array) || t["data_offsets"].size() != 2 ||
        !t["data_offsets"][0].is_number_unsigned() || !t["data_offsets"][1].is_number_unsigned())
      return bad("malformed header entry");
    const auto& dtype = t["dtype"].get_ref<const std::string&>();
    for (const Format& f : kFormats)
      if (dtype == f.name) at->format = &f;
    if (!at->format) return error(Code::unsupported, "dtype " + dtype + " is not known");
    shape->stored = at->format->stored;
    uint64_t count = 1;
    for (const auto& d : t["shape"]) {
      const uint64_t n = d.is_number_unsigned() ? d.get<uint64_t>() : 0;
      if (n == 0 || n > (uint64_t{1} << 32) || count > (uint64_t{1} << 40) / n) return bad("shape: empty or absurd");
      count *= n;
      shape->shape.push_back(static_cast<int64_t>(n));
    }
    *begin = t["data_offsets"][0].get<uint64_t>();
    *end = t["data_offsets"][1].get<uint64_t>();
    if (*begin > *end || *end > data_bytes) return bad("data_offsets: outside the file (truncated?)");
    if (*end - *begin != count * static_cast<uint64_t>(at->format->bytes))
      return bad("data_offsets: " + std::to_string(*end - *begin) + " bytes, its shape needs " +
                 std::to_string(count * static_cast<uint64_t>(at->format->bytes)));
    return {};
  }

  std::string name_;
  std::vector<std::shared_ptr<const platform::MappedFile>> files_;
  std::map<std::string, SourceTensor> tensors_;
  std::map<std::string, Located> located_;
};

}  // namespace

std::string checkpoint_directory(const std::string& path) {
  return platform::path_kind(path) == platform::PathKind::directory ? path : platform::parent_directory(path);
}

Result<std::unique_ptr<TensorSource>> open_safetensors(const std::string& path) {
  using platform::PathKind;
  auto source = std::make_unique<SafetensorsSource>(path);
  const auto in = [&](const char* name) { return platform::join_path(path, name); };
  const auto has = [&](const char* name) { return platform::path_kind(in(name)) == PathKind::file; };
  const std::string index = in("model.safetensors.index.json");
  if (platform::path_kind(path) != PathKind::directory) {
    AERIE_TRY(source->add_file(path));
  } else if (has("model.safetensors") || has("medusa_lm_head.safetensors") || has("hydra_lm_head.safetensors")) {
    for (const char* name : {"model.safetensors", "medusa_lm_head.safetensors", "hydra_lm_head.safetensors"})
      if (has(name)) {
        AERIE_TRY(source->add_file(in(name)));
        break;
      }
  } else if (has("model.safetensors.index.json")) {
    AERIE_ASSIGN(const auto document, read_json(index));
    const json& j = document.root();
    if (!j.contains("weight_map") || !j["weight_map"].is_object())
      return error(Code::bad_format, index + ": weight_map is missing");
    std::set<std::string> shards;
    for (const auto& [name, file] : j["weight_map"].items()) {
      if (!file.is_string() ||
          file.get_ref<const std::string&>().find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
        return error(Code::bad_format, index + ": " + name + ": a shard must be a file of the same folder");
      shards.insert(file.get<std::string>());
    }
    for (const std::string& shard : shards) AERIE_TRY(source->add_file(in(shard.c_str())));
    for (const auto& entry : j["weight_map"].items())
      if (!source->tensors().count(entry.key()))
        return error(Code::bad_format, path + ": tensor " + entry.key() + ": missing (the index lists it)");
  } else {
    AERIE_ASSIGN(const auto files, platform::list_files(path, ".safetensors"));
    if (files.size() > 1)
      return error(Code::not_found, path + ": several .safetensors files and no model.safetensors.index.json");
    if (files.empty()) {
      AERIE_ASSIGN(const auto pickles, find_pickles(path));
      if (!pickles.empty()) return refuse_pickles(pickles);
      return error(Code::not_found, path + ": no model.safetensors");
    }
    AERIE_TRY(source->add_file(files[0]));
  }
  return std::unique_ptr<TensorSource>(std::move(source));
}

}  // namespace aerie
