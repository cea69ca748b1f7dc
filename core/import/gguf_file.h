// GGUF files (llama.cpp): metadata by key, tensors by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/import/gguf_blocks.h"
#include "core/import/source.h"
#include "core/platform/file.h"

namespace aerie {

class GgufFile final : public TensorSource {
 public:
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path);

  const std::string& name() const override { return path_; }
  const std::map<std::string, SourceTensor>& tensors() const override { return tensors_; }
  Result<std::vector<float>> read(const std::string& tensor, int64_t first, int64_t n) const override;
  Result<std::vector<int64_t>> read_integers(const std::string& tensor) const override;

  // Whether two tensors are the same bytes.
  bool same(const std::string& a, const std::string& b) const;

  // Metadata. Messages are "FILE: KEY: what".
  bool has(const std::string& key) const { return values_.count(key) != 0; }
  bool is_list(const std::string& key) const { return has(key) && values_.at(key).array; }
  Status integer(const std::string& key, int32_t* out) const;  // required
  Status integer(const std::string& key, int32_t* out, int32_t fallback) const;
  Status number(const std::string& key, float* out) const;  // required
  Status number(const std::string& key, float* out, float fallback) const;
  Status boolean(const std::string& key, bool* out, bool fallback) const;
  Status text(const std::string& key, std::string_view* out) const;  // required; a part of the mapped file
  Result<std::vector<std::string_view>> texts(const std::string& key) const;
  Result<std::vector<int32_t>> integers(const std::string& key) const;
  Result<std::vector<bool>> booleans(const std::string& key) const;  // or integers: 0 is false
  Result<std::vector<float>> numbers(const std::string& key) const;
  // All values whose keys begin so, as bytes: what they say, not what is made of it.
  std::vector<uint8_t> raw(const std::string& prefix) const;

 private:
  // As GGUF numbers them.
  enum class Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
  struct Value {
    Kind kind = Kind::u8;  // of an array: its items'
    bool array = false;
    uint64_t count = 1;
    std::span<const uint8_t> bytes;  // of a string or an array of them: each behind its length
  };
  struct Located {
    const GgufType* type = nullptr;
    const uint8_t* data = nullptr;
  };
  class Reader;

  explicit GgufFile(std::string path) : path_(std::move(path)) {}
  Status parse();
  Status read_value(Reader& in, Value* value) const;
  Status read_tensors(Reader& in, uint64_t count);
  Status bad(const std::string& what) const { return error(Code::bad_format, path_ + ": " + what); }
  Result<const Value*> find(const std::string& key, bool array) const;
  Result<int64_t> whole(const std::string& key, const Value& v, uint64_t item) const;

  std::string path_;
  std::shared_ptr<const platform::MappedFile> file_;
  std::map<std::string, Value> values_;
  std::map<std::string, SourceTensor> tensors_;
  std::map<std::string, Located> located_;
};

}  // namespace aerie
