#include "core/import/gguf_tokenizer.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/import/gguf_vocabulary.h"
#include "core/platform/utf8.h"
#include "core/text/blob.h"
#include "core/text/pair_table.h"

namespace aerie {

Status bad_tokenizer(const GgufFile& file, const std::string& what) { return error(Code::bad_format, file.name() + ": " + what); }
Status refuse_tokenizer(const GgufFile& file, const std::string& what) {
  return error(Code::unsupported, file.name() + ": " + what + "; --tokenizer takes a tokenizer.json instead, or \"none\"");
}

Result<GgufVocabulary> read_gguf_vocabulary(const GgufFile& file) {
  GgufVocabulary v;
  AERIE_ASSIGN(v.tokens, file.texts("tokenizer.ggml.tokens"));
  v.types.assign(v.tokens.size(), GgufVocabulary::kNormal);
  if (file.has("tokenizer.ggml.token_type")) {
    AERIE_ASSIGN(auto types, file.integers("tokenizer.ggml.token_type"));
    v.types.swap(types);
  }
  if (v.types.size() != v.tokens.size())
    return bad_tokenizer(file, "tokenizer.ggml.token_type: " + std::to_string(v.types.size()) + " types of " +
                                   std::to_string(v.tokens.size()) + " tokens");
  if (v.tokens.size() > text::kMaxVocab) return bad_tokenizer(file, "tokenizer.ggml.tokens: " + std::to_string(v.tokens.size()) + " of them");
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const auto wrong = [&](const std::string& what) {
      return bad_tokenizer(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + ": " + what);
    };
    if (v.types[id] < GgufVocabulary::kNormal || v.types[id] > GgufVocabulary::kByte) return wrong("type " + std::to_string(v.types[id]));
    if (v.tokens[id].size() > text::kMaxTokenBytes) return wrong(std::to_string(v.tokens[id].size()) + " bytes");
    if (utf8_valid_prefix(v.tokens[id]) != v.tokens[id].size()) return wrong("is not UTF-8");
  }
  return v;
}

std::string gguf_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string gguf_added_token(const GgufVocabulary& v, size_t id) {
  return "{\"id\":" + std::to_string(id) + ",\"content\":" + gguf_quoted(v.tokens[id]) + ",\"normalized\":false,\"special\":" +
         (v.types[id] == GgufVocabulary::kUserDefined ? "false}" : "true}");
}

Result<std::string> gguf_merges(const GgufFile& file) {
  AERIE_ASSIGN(const std::vector<std::string_view> merges, file.texts("tokenizer.ggml.merges"));
  if (merges.size() > text::kMaxMerges) return bad_tokenizer(file, "tokenizer.ggml.merges: " + std::to_string(merges.size()) + " of them");
  std::string pairs;
  for (const std::string_view merge : merges) pairs += (pairs.empty() ? "" : ",") + gguf_quoted(merge);
  return pairs;
}

std::string gguf_bos_template(int32_t bos) {
  if (bos < 0) return "null";
  return R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"bos","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
         R"("pair":[],"special_tokens":{"bos":{"id":"bos","ids":[)" +
         std::to_string(bos) + R"(],"tokens":["bos"]}}})";
}

Result<std::shared_ptr<const text::Tokenizer>> gguf_tokenizer(const GgufFile& file) {
  if (!file.has("tokenizer.ggml.model")) return std::shared_ptr<const text::Tokenizer>();
  std::string_view model;
  AERIE_TRY(file.text("tokenizer.ggml.model", &model));
  if (model == "no_vocab" || model == "none") return std::shared_ptr<const text::Tokenizer>();
  if (model == "gpt2") return gguf_byte_bpe(file);
  if (model == "llama") return gguf_sentencepiece(file);
  if (model == "gemma4") return gguf_gemma_bpe(file);
  return refuse_tokenizer(file, "tokenizer.ggml.model: \"" + std::string(model) + "\" is not supported");
}

Status gguf_end_ids(const GgufFile& file, std::vector<int32_t>* ids) {
  const auto add = [&](int32_t id) {
    if (id >= 0 && std::find(ids->begin(), ids->end(), id) == ids->end()) ids->push_back(id);
  };
  for (const char* key : {"eos", "eot", "eom"}) {
    int32_t id = -1;
    AERIE_TRY(file.integer(std::string("tokenizer.ggml.") + key + "_token_id", &id, -1));
    add(id);
  }
  if (!file.has("tokenizer.ggml.tokens")) return {};
  AERIE_ASSIGN(const std::vector<std::string_view> tokens, file.texts("tokenizer.ggml.tokens"));
  const auto has = [&](std::string_view token) { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); };
  // gpt-oss's, whose <|end|> is that of one message of several.
  const bool harmony = has("<|return|>") && has("<|call|>");
  const auto ends = [&](std::string_view token) {
    if (token == "<|return|>" || token == "<|call|>") return harmony;
    return token != "<|end|>" || !harmony;
  };
  for (const std::string_view end : {"<|return|>", "<|call|>", "<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<|eom_id|>", "<|end|>",
                                     "<|end_of_text|>", "<EOT>", "<end_of_turn>", "<turn|>", "<|tool_response>"}) {
    if (!ends(end)) continue;
    if (const auto at = std::find(tokens.begin(), tokens.end(), end); at != tokens.end()) add(static_cast<int32_t>(at - tokens.begin()));
  }
  return {};
}

}  // namespace aerie
