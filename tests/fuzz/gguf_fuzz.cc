// libFuzzer: GGUF files, raw or as changes to a right one; all of what a file says is read.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/gguf_fuzz.cc core/import/gguf_file.cc
//     core/import/gguf_blocks.cc core/import/gguf_tokenizer.cc core/text/*.cc core/platform/file_posix.cc
//     $(pkg-config --cflags --libs libpcre2-8) -o gguf_fuzz
// Layout: kind u8; 0: a file; else changes: position u16, value u8.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/import/gguf_tokenizer.h"
#include "tests/unit/package/gguf_builder.h"

namespace {

std::string right(bool pieces) {
  aerie::test::Gguf g;
  g.text("general.architecture", "llama");
  g.u32("llama.block_count", 1);
  g.f32("llama.rope.freq_base", 10000);
  g.boolean("tokenizer.ggml.add_bos_token", pieces);
  std::vector<std::string> tokens;
  for (int i = 0; i < 3 + 256 + 9; ++i) {
    char byte[8];
    std::snprintf(byte, sizeof byte, "<0x%02X>", static_cast<unsigned>(i - 3) & 255);
    tokens.push_back(pieces && i >= 3 && i < 259 ? byte : "t" + std::to_string(i));
  }
  g.text("tokenizer.ggml.model", pieces ? "llama" : "gpt2");
  g.text("tokenizer.ggml.pre", "llama-bpe");
  g.texts("tokenizer.ggml.tokens", tokens);
  g.texts("tokenizer.ggml.merges", {"t1 t2", "t t"});
  g.f32s("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
  g.i32s("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), 1));
  g.tensor("f16", {2, 3}, 1, std::string(12, 'x'));
  for (const auto& [type, bytes] : {std::pair{2, 18}, {3, 20}, {6, 22}, {7, 24}, {8, 34}})
    g.tensor("of32." + std::to_string(type), {2, 32}, static_cast<uint32_t>(type), std::string(static_cast<size_t>(2 * bytes), 'x'));
  for (const auto& [type, bytes] : {std::pair{12, 144}, {13, 176}, {14, 210}})
    g.tensor("of256." + std::to_string(type), {256}, static_cast<uint32_t>(type), std::string(static_cast<size_t>(bytes), 'x'));
  return g.bytes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string base[] = {right(false), right(true)};
  static const std::string path = "/dev/shm/aerie-gguf-fuzz-" + std::to_string(getpid());
  if (size < 1) return 0;
  std::string file(data + 1, data + size);
  if (data[0] != 0) {
    file = base[data[0] & 1];
    for (size_t i = 1; i + 2 < size; i += 3) file[(data[i] | data[i + 1] << 8) % file.size()] = static_cast<char>(data[i + 2]);
  }
  std::ofstream(path, std::ios::binary) << file;
  const auto opened = aerie::GgufFile::open(path);
  unlink(path.c_str());
  if (!opened.ok()) return 0;
  const aerie::GgufFile& g = **opened;
  for (const auto& [name, tensor] : g.tensors()) {
    if (tensor.elements() > 1 << 20) continue;  // as many as the file has bytes for
    const auto values = g.read(name);
    if (values.ok() && static_cast<int64_t>(values->size()) != tensor.elements()) std::abort();
  }
  int32_t i;
  float f;
  bool b;
  std::string_view t;
  for (const char* key : {"general.architecture", "llama.block_count", "llama.rope.freq_base", "tokenizer.ggml.add_bos_token",
                          "tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    (void)g.integer(key, &i, 0);
    (void)g.number(key, &f, 0);
    (void)g.boolean(key, &b, false);
    (void)g.text(key, &t);
    (void)g.texts(key);
    (void)g.integers(key);
    (void)g.numbers(key);
  }
  const auto tokenizer = aerie::gguf_tokenizer(g);
  if (tokenizer.ok() && *tokenizer) (void)(*tokenizer)->encode("a text\n", {});
  return 0;
}
