// A golden head's directory in memory (tests/golden/heads), to be changed tensor by tensor and converted.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/import/convert.h"
#include "unit/package/fixtures.h"

namespace aerie::test {

using nlohmann::json;

// A head's directory in memory.
struct EditedHead {
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    Bytes bytes;
    template <class T>
    T* as() {
      return reinterpret_cast<T*>(bytes.data());
    }
  };
  Folder folder;
  json config;
  std::map<std::string, Tensor> tensors;
  ConvertOptions options;
  int made = 0;

  explicit EditedHead(const std::string& kind) {
    const std::string golden = std::string(AERIE_SOURCE_DIR) + "/tests/golden/";
    ConvertOptions target;
    target.source = golden + "logits/mha";
    target.output = folder / "t.aerie";
    target.dtype = kernels::DType::f32;
    EXPECT_TRUE(convert(target).ok());
    std::ifstream(golden + "heads/" + kind + "/config.json") >> config;
    read(golden + "heads/" + kind + "/model.safetensors");
    options.source = folder / "head";
    options.output = folder / "d.aerie";
    options.dtype = kernels::DType::f32;
    options.drafter_for = target.output;
  }
  // Adds the tensors of a safetensors file.
  void read(const std::string& path) {
    const Bytes file = slurp(path);
    uint64_t header = 0;
    std::memcpy(&header, file.data(), 8);
    const json j = json::parse(file.begin() + 8, file.begin() + 8 + static_cast<std::ptrdiff_t>(header));
    for (const auto& [name, t] : j.items()) {
      if (name == "__metadata__") continue;
      const auto at = file.begin() + 8 + static_cast<std::ptrdiff_t>(header);
      tensors[name] = {t["dtype"], t["shape"], Bytes(at + t["data_offsets"][0].get<std::ptrdiff_t>(), at + t["data_offsets"][1].get<std::ptrdiff_t>())};
    }
  }
  void add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape) {
    size_t bytes = dtype == "BOOL" ? 1 : dtype == "I64" ? 8 : 4;
    for (const int64_t d : shape) bytes *= static_cast<size_t>(d);
    tensors[name] = {dtype, std::move(shape), Bytes(bytes)};
  }
  Status run() {
    json header;
    Bytes data;
    for (const auto& [name, t] : tensors) {
      header[name] = {{"dtype", t.dtype}, {"shape", t.shape}, {"data_offsets", {data.size(), data.size() + t.bytes.size()}}};
      data.insert(data.end(), t.bytes.begin(), t.bytes.end());
    }
    const std::string text = header.dump();
    const uint64_t n = text.size();
    Bytes file(8);
    std::memcpy(file.data(), &n, 8);
    file.insert(file.end(), text.begin(), text.end());
    file.insert(file.end(), data.begin(), data.end());
    spit(options.source + "/config.json", config.dump());
    spit(options.source + "/model.safetensors", file);
    const Status s = convert(options);
    EXPECT_EQ(fs::exists(options.output), s.ok()) << "a refused head leaves no file";
    return s;
  }
  void refused(std::initializer_list<std::string> words) {
    const Status s = run();
    EXPECT_FALSE(s.ok());
    for (const std::string& w : words) EXPECT_NE(s.message().find(w), std::string::npos) << w << " / " << s.message();
  }
  std::shared_ptr<const Package> package() {
    const Status s = run();
    EXPECT_TRUE(s.ok()) << s.message();
    auto p = *Package::open(options.output);
    options.output = folder / ("d" + std::to_string(++made) + ".aerie");  // Windows replaces no file that is mapped
    return p;
  }
};

}  // namespace aerie::test
