// safetensors: u64 header length, JSON header {name: {dtype, shape, data_offsets}}, data.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/import/source.h"
#include "core/platform/file.h"

namespace aerie {

namespace {

constexpr uint64_t kMaxHeader = 100u << 20;  // the format's own cap
using nlohmann::json;

float half_to_float(uint16_t h) {
  const int sign = h >> 15, exponent = h >> 10 & 31, fraction = h & 1023;
  float v;
  if (exponent == 31) v = fraction ? NAN : INFINITY;
  else if (exponent == 0) v = std::ldexp(static_cast<float>(fraction), -24);
  else v = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return sign ? -v : v;
}

struct Located {
  size_t file;
  uint64_t begin;  // in the file
  int size;        // bytes an element
  bool bf16;
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

  Result<std::vector<float>> read(const std::string& tensor) const override {
    const Located& at = located_.at(tensor);
    const uint8_t* data = files_[at.file]->bytes().data() + at.begin;
    std::vector<float> out(static_cast<size_t>(tensors_.at(tensor).elements()));
    for (size_t i = 0; i < out.size(); ++i) {
      if (at.size == 4) {
        std::memcpy(&out[i], data + 4 * i, 4);
      } else {
        uint16_t h;
        std::memcpy(&h, data + 2 * i, 2);
        if (at.bf16) {
          const uint32_t bits = uint32_t{h} << 16;
          std::memcpy(&out[i], &bits, 4);
        } else {
          out[i] = half_to_float(h);
        }
      }
      if (!std::isfinite(out[i])) return error(Code::bad_format, name_ + ": " + tensor + ": a value is not finite");
    }
    return out;
  }

 private:
  Status add(const platform::MappedFile& file) {
    const auto bytes = file.bytes();
    const auto bad = [](const std::string& what) { return error(Code::bad_format, what); };
    uint64_t header = 0;
    if (bytes.size() < 8) return bad("header length: the file is too short");
    std::memcpy(&header, bytes.data(), 8);
    if (header > kMaxHeader || header > bytes.size() - 8) return bad("header length: " + std::to_string(header));
    const json j = json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<int64_t>(header), nullptr, false);
    if (!j.is_object()) return bad("header: not a JSON object");
    const uint64_t data = 8 + header, size = bytes.size() - data;
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const auto& [name, t] : j.items()) {
      if (name == "__metadata__") continue;
      if (!t.is_object() || !t.contains("dtype") || !t["dtype"].is_string() || !t.contains("shape") ||
          !t["shape"].is_array() || !t.contains("data_offsets") || !t["data_offsets"].is_array() ||
          t["data_offsets"].size() != 2 || !t["data_offsets"][0].is_number_unsigned() ||
          !t["data_offsets"][1].is_number_unsigned())
        return bad(name + ": malformed entry");
      const std::string dtype = t["dtype"];
      Located at{files_.size(), 0, dtype == "F32" ? 4 : 2, dtype == "BF16"};
      if (dtype != "F32" && dtype != "F16" && dtype != "BF16")
        return error(Code::unsupported, name + ": dtype " + dtype + " (F32, F16 and BF16 are read)");
      SourceTensor s;
      uint64_t count = 1;
      for (const auto& d : t["shape"]) {
        if (!d.is_number_unsigned() || d.get<uint64_t>() == 0 || d.get<uint64_t>() > (uint64_t{1} << 32) ||
            count > (uint64_t{1} << 40) / d.get<uint64_t>())
          return bad(name + ": shape");
        count *= d.get<uint64_t>();
        s.shape.push_back(d.get<int64_t>());
      }
      const auto begin = t["data_offsets"][0].get<uint64_t>(), end = t["data_offsets"][1].get<uint64_t>();
      if (begin > end || end > size || end - begin != count * static_cast<uint64_t>(at.size))
        return bad(name + ": data_offsets do not fit the file or the shape (truncated?)");
      at.begin = data + begin;
      ranges.emplace_back(begin, end);
      if (!tensors_.emplace(name, s).second) return bad(name + ": listed twice");
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

  std::string name_;
  std::vector<std::shared_ptr<const platform::MappedFile>> files_;
  std::map<std::string, SourceTensor> tensors_;
  std::map<std::string, Located> located_;
};

}  // namespace

Result<json> read_json(const std::string& path, uint64_t cap) {
  AERIE_ASSIGN(const auto bytes, platform::read_file(path, cap));
  json j = json::parse(bytes.begin(), bytes.end(), nullptr, false);
  if (!j.is_object()) return error(Code::bad_format, path + ": not a JSON object");
  return j;
}

Result<std::unique_ptr<TensorSource>> open_safetensors(const std::string& directory) {
  auto source = std::make_unique<SafetensorsSource>(directory);
  const std::string single = directory + "/model.safetensors", index = directory + "/model.safetensors.index.json";
  if (platform::path_kind(single) == platform::PathKind::file) {
    AERIE_TRY(source->add_file(single));
  } else if (platform::path_kind(index) == platform::PathKind::file) {
    AERIE_ASSIGN(const json j, read_json(index));
    if (!j.contains("weight_map") || !j["weight_map"].is_object()) return error(Code::bad_format, index + ": weight_map is missing");
    std::map<std::string, bool> shards;
    for (const auto& [name, file] : j["weight_map"].items()) {
      if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
        return error(Code::bad_format, index + ": " + name + ": file name");
      shards[file] = true;
    }
    for (const auto& shard : shards) AERIE_TRY(source->add_file(directory + "/" + shard.first));
  } else if (platform::path_kind(directory + "/pytorch_model.bin") == platform::PathKind::file) {
    return error(Code::unsupported, directory + ": pytorch_model.bin is a pickle, which can run code; convert it with "
                                                "safetensors.torch.save_file first");
  } else {
    return error(Code::not_found, directory + ": no model.safetensors");
  }
  return std::unique_ptr<TensorSource>(std::move(source));
}

Result<std::vector<float>> TensorTaker::take(const std::string& name, int64_t rows, int64_t cols) {
  const auto it = source_.tensors().find(name);
  if (it == source_.tensors().end()) return error(Code::bad_format, source_.name() + ": tensor " + name + ": missing");
  const std::vector<int64_t> want = rows == 1 ? std::vector<int64_t>{cols} : std::vector<int64_t>{rows, cols};
  if (it->second.shape != want) {
    std::string have;
    for (const int64_t d : it->second.shape) have += (have.empty() ? "" : ", ") + std::to_string(d);
    return error(Code::bad_format, source_.name() + ": tensor " + name + ": shape (" + have + "), the config needs (" +
                                       (rows == 1 ? "" : std::to_string(rows) + ", ") + std::to_string(cols) + ")");
  }
  left_.erase(name);
  return source_.read(name);
}

Status TensorTaker::nothing_left() const {
  if (left_.empty()) return {};
  return error(Code::bad_format, source_.name() + ": tensor " + left_.begin()->first + ": unexpected" +
                                     (left_.size() > 1 ? " (and " + std::to_string(left_.size() - 1) + " more)" : ""));
}

}  // namespace aerie
