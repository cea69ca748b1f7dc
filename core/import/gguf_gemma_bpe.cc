// Gemma 4's tokenizer in GGUF files: SentencePiece's pieces and spaces, with merges in place of scores.
#include <unordered_set>

#include "core/import/gguf_vocabulary.h"

namespace aerie {

// By way of the tokenizer.json that the file was made of. There special tokens are in the vocabulary, too, and merges may name them.
Result<std::shared_ptr<const text::Tokenizer>> gguf_gemma_bpe(const GgufFile& file) {
  AERIE_ASSIGN(const GgufVocabulary v, read_gguf_vocabulary(file));
  std::string vocab, added;
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const int32_t type = v.types[id];
    if (type == GgufVocabulary::kUnused) continue;
    if (!seen.insert(v.tokens[id]).second) return bad_tokenizer(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + ": is there twice");
    vocab += (vocab.empty() ? "" : ",") + gguf_quoted(v.tokens[id]) + ":" + std::to_string(id);
    if (type != GgufVocabulary::kNormal && type != GgufVocabulary::kByte) added += (added.empty() ? "" : ",") + gguf_added_token(v, id);
  }
  AERIE_ASSIGN(const std::string merges, gguf_merges(file));
  bool add_bos = true;  // and where a file says otherwise llama.cpp does so all the same
  int32_t bos = -1;
  AERIE_TRY(file.boolean("tokenizer.ggml.add_bos_token", &add_bos, true));
  AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &bos));
  const std::string json = R"({"model":{"type":"BPE","byte_fallback":true,"fuse_unk":true,"vocab":{)" + vocab + "},\"merges\":[" + merges +
                           "]},\"added_tokens\":[" + added + R"(],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
                           R"("pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false},)"
                           R"("post_processor":)" + gguf_bos_template(bos) +
                           R"(,"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
                           R"({"type":"ByteFallback"},{"type":"Fuse"}]}})";
  auto made = text::Tokenizer::from_hf_json(json);
  if (!made.ok()) return made.status().at(file.name() + ": tokenizer.ggml.*, read as a");
  return made;
}

}  // namespace aerie
