// The tokenizer inside a GGUF file.
#pragma once

#include "core/import/gguf_file.h"
#include "core/text/tokenizer.h"

namespace aerie {

// Null: the file has none. Byte-level BPE of the pre-tokenizers known here, or SentencePiece BPE as Llama 2 has it; others are
// refused by name.
Result<std::shared_ptr<const text::Tokenizer>> gguf_tokenizer(const GgufFile& file);

}  // namespace aerie
