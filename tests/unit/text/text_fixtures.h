// Shared by the tests of core/text (one translation unit: everything here is inline).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/text/tokenizer.h"

namespace aerie::text::test {

using TokenizerPtr = std::shared_ptr<const Tokenizer>;
using Ids = std::vector<int32_t>;

inline const std::string kGolden = std::string(AERIE_SOURCE_DIR) + "/tests/golden/text/";
inline const std::string kModels = std::string(AERIE_SOURCE_DIR) + "/../shared/models/";

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const uint8_t> bytes_of(const std::string& s) {
  return {reinterpret_cast<const uint8_t*>(s.data()), s.size()};
}

inline TokenizerPtr load_hf(const std::string& name) {
  auto tokenizer = Tokenizer::from_hf_json(read_file(kGolden + name + "/tokenizer.json"));
  EXPECT_TRUE(tokenizer.ok()) << name << ": " << tokenizer.status().message();
  return tokenizer.ok() ? *tokenizer : nullptr;
}

// Null when ../shared is not there.
inline TokenizerPtr load_stories() {
  const std::string file = read_file(kModels + "tok512.bin");
  if (file.empty()) return nullptr;
  auto tokenizer = Tokenizer::from_llama2c(bytes_of(file), 512);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return tokenizer.ok() ? *tokenizer : nullptr;
}

inline Ids encode(const Tokenizer& t, std::string_view text, EncodeOptions options = {}) {
  auto ids = t.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : Ids{};
}

// All token bytes in a row, nothing replaced.
inline std::string raw_bytes(const Tokenizer& t, const Ids& ids) {
  std::string out;
  int32_t previous = -1;
  for (const int32_t id : ids) {
    out += t.token_bytes(id, previous);
    previous = id;
  }
  return out;
}

inline std::string stream(TokenizerPtr t, const Ids& ids) {
  StreamDecoder decoder(std::move(t));
  std::string out;
  for (const int32_t id : ids) decoder.push(id, &out);
  decoder.finish(&out);
  return out;
}

// A byte-level tokenizer of the 256 bytes alone, or all but one: id = byte.
inline TokenizerPtr make_byte_tokenizer(int without = -1) {
  nlohmann::json vocab;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
    const int c = printable ? b : next++;
    std::string key;
    if (c < 0x80) {
      key = static_cast<char>(c);
    } else {
      key = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    }
    if (b != without) vocab[key] = b;
  }
  const nlohmann::json j = {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}},
                            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                            {"decoder", {{"type", "ByteLevel"}}}};
  auto made = Tokenizer::from_hf_json(j.dump());
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : nullptr;
}
inline TokenizerPtr byte_tokenizer() {
  static const TokenizerPtr instance = make_byte_tokenizer();
  return instance;
}

}  // namespace aerie::text::test
