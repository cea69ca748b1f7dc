// What the readers of GGUF's tokenizers share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/import/gguf_file.h"
#include "core/text/tokenizer.h"

namespace aerie {

struct GgufVocabulary {
  enum Type : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  std::vector<std::string_view> tokens;
  std::vector<int32_t> types;
};
Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file);

Status bad_tokenizer(const GgufFile& file, const std::string& what);
Status refuse_tokenizer(const GgufFile& file, const std::string& what);  // and says what to do

// Parts of a tokenizer.json. Texts that are not UTF-8 become others: merges of what is not a token.
std::string gguf_quoted(std::string_view text);
std::string gguf_added_token(const GgufVocabulary& v, size_t id);
Result<std::string> gguf_merges(const GgufFile& file);
std::string gguf_bos_template(int32_t bos);  // negative: none

// By tokenizer.ggml.model.
Result<std::shared_ptr<const text::Tokenizer>> gguf_gemma_bpe(const GgufFile& file);
Result<std::shared_ptr<const text::Tokenizer>> gguf_byte_bpe(const GgufFile& file);
Result<std::shared_ptr<const text::Tokenizer>> gguf_sentencepiece(const GgufFile& file);

}  // namespace aerie
