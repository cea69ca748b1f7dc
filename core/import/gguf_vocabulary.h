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

// By tokenizer.ggml.model.
Result<std::shared_ptr<const text::Tokenizer>> gguf_byte_bpe(const GgufFile& file);
Result<std::shared_ptr<const text::Tokenizer>> gguf_sentencepiece(const GgufFile& file);

}  // namespace aerie
