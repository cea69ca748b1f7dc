// libFuzzer: a blob, a tokenizer.json, tokenizer.bin or tokenizer.model, then text through what it gives.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/tokenizer_fuzz.cc
//     core/text/*.cc core/platform/utf8.cc $(pkg-config --cflags --libs libpcre2-8) -o tokenizer_fuzz
// Layout: kind u8, text length u8, text, tokenizer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using aerie::text::Tokenizer;
  if (size < 2 || size < 2u + data[1]) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, data[1]);
  const std::span<const uint8_t> rest(data + 2 + text.size(), size - 2 - text.size());
  const int kind = data[0] % 4;
  auto tokenizer = kind == 0   ? Tokenizer::deserialize(rest)
                   : kind == 1 ? Tokenizer::from_hf_json({reinterpret_cast<const char*>(rest.data()), rest.size()})
                   : kind == 2 ? Tokenizer::from_llama2c(rest, 259 + data[0] / 4)
                               : Tokenizer::from_sentencepiece(rest);
  if (!tokenizer.ok()) return 0;
  for (const bool special : {false, true}) {
    auto ids = (*tokenizer)->encode(text, {.add_bos = true, .parse_special = special});
    if (!ids.ok()) continue;
    aerie::text::StreamDecoder decoder(*tokenizer);
    std::string out;
    for (const int32_t id : *ids) {
      if (id < 0 || id >= (*tokenizer)->vocab_size()) std::abort();
      decoder.push(id, &out);
    }
    decoder.finish(&out);
  }
  if (!Tokenizer::deserialize((*tokenizer)->serialize()).ok()) std::abort();
  return 0;
}
