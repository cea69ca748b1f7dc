// The tokenizer inside a GGUF file.
#pragma once

#include "core/import/gguf_file.h"
#include "core/text/tokenizer.h"

namespace aerie {

// Null: the file has none. Byte-level BPE of the pre-tokenizers known here, or SentencePiece BPE as Llama 2 has it; others are
// refused by name.
Result<std::shared_ptr<const text::Tokenizer>> gguf_tokenizer(const GgufFile& file);

// The tokens that end a text: those that the file names, and some that are known by their text.
Status gguf_end_ids(const GgufFile& file, std::vector<int32_t>* ids);

}  // namespace aerie
