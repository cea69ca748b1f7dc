// libFuzzer: a grammar, GBNF or JSON Schema, and a text of bytes: what the mask allows is what is accepted, in bounded time.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/grammar_fuzz.cc
//     core/text/grammar/*.cc core/text/*.cc core/platform/utf8.cc $(pkg-config --cflags --libs libpcre2-8) -o grammar_fuzz
// Layout: kind u8, text length u8, text, grammar.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/grammar/grammar.h"

namespace {

using aerie::Code;
using aerie::text::Tokenizer;
using namespace aerie::text::grammar;

// A token for each byte, id = byte, and an end.
class Bytes final : public Tokenizer {
 public:
  Bytes() {
    for (int b = 0; b < 256; ++b) bytes_[b] = static_cast<char>(b);
  }
  std::vector<uint8_t> serialize() const override { return {}; }
  int32_t vocab_size() const override { return 257; }
  int32_t bos_id() const override { return -1; }
  aerie::Result<std::vector<int32_t>> encode(std::string_view text, const aerie::text::EncodeOptions&) const override {
    std::vector<int32_t> out;
    for (const char c : text) out.push_back(static_cast<uint8_t>(c));
    return out;
  }
  std::string_view token_bytes(int32_t id, int32_t) const override {
    return is_special(id) ? std::string_view() : std::string_view(&bytes_[id], 1);
  }
  bool is_special(int32_t id) const override { return id == 256; }
  std::string_view token_text(int32_t) const override { return {}; }

 private:
  char bytes_[256];
};

bool has(const std::vector<uint32_t>& mask, int32_t t) { return (mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1) != 0; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto& trie =
      *new std::shared_ptr<const TokenTrie>(std::make_shared<const TokenTrie>(std::make_shared<const Bytes>()));
  if (size < 2 || size < 2u + data[1]) return 0;
  const bool schema = data[0] % 2 != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, data[1]);
  const std::string_view rest(text.data() + text.size(), size - 2 - text.size());
  auto program = schema ? program_of_json_schema(rest) : program_of_gbnf(rest);
  if (!program.ok()) return 0;
  auto made = Grammar::make(std::move(program).value(), trie, {256});
  if (!made.ok()) return 0;
  Grammar& g = **made;
  Grammar::Position p = g.begin();
  std::string so_far;
  std::vector<uint32_t> mask(9);
  for (const char c : text) {
    std::fill(mask.begin(), mask.end(), 0u);
    const Code code = g.allowed(&p, mask);
    if (code == Code::limit) return 0;
    if (code != Code::ok) std::abort();  // every byte has a token: a text that has begun can be ended
    auto forced = g.forced(&p, 20);
    if (!forced.ok()) std::abort();
    Grammar::Position ahead = p;
    for (size_t i = 0; i < forced->size(); ++i) {  // whatever is forced may come, and nothing but it
      if (g.accept(&ahead, (*forced)[i]) != Code::ok) std::abort();
      for (int32_t t = 0; i == 0 && t <= 256; ++t)
        if (has(mask, t) != (t == (*forced)[0])) std::abort();
    }
    const bool complete = g.complete(p);
    if (has(mask, 256) != complete) std::abort();
    if (schema && complete && !nlohmann::json::accept(so_far)) std::abort();
    // What the text asks for, or, where it may not come, what may that is next to it.
    int32_t t = static_cast<uint8_t>(c);
    Grammar::Position other = p;
    if ((g.accept(&other, t) == Code::ok) != has(mask, t)) std::abort();
    int tries = 0;
    while (!has(mask, t) && ++tries < 256) t = (t + 1) % 256;
    if (!has(mask, t)) return complete ? 0 : (std::abort(), 0);
    if (g.accept(&p, t) != Code::ok) std::abort();
    so_far += static_cast<char>(t);
  }
  return 0;
}
