// The byte-level BPE of GGUF files.
#include <algorithm>
#include <unordered_set>

#include "core/import/gguf_vocabulary.h"

namespace aerie {
namespace {

// The model names a pre-tokenizer; what it does is written down in llama.cpp (llama-vocab.cpp) and in the tokenizer.json of the
// models that gave it its name.
#define SPLIT(regex) R"({"type":"Split","pattern":{"Regex":")" regex R"("},"behavior":"Isolated","invert":false},)"
#define WORDS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|)"
#define HEAD R"([^\\r\\n\\p{L}\\p{N}]?)"
#define TAIL R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
#define REST R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)"
constexpr const char* kBytes = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
constexpr const char* kGpt2 = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
constexpr const char* kDigits = R"({"type":"Digits","individual_digits":true},)";
constexpr const char* kLlama3 = SPLIT(WORDS R"(\\p{N}{1,3})" REST);
constexpr const char* kQwen2 = SPLIT(WORDS R"(\\p{N})" REST);
constexpr const char* kQwen35 = SPLIT(
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|)" HEAD R"([\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)");
constexpr const char* kGpt4o = SPLIT(
    HEAD R"([\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+)" TAIL
    "|" HEAD R"([\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*)" TAIL
    R"(|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)");
constexpr const char* kNfc = R"({"type":"NFC"})";
#undef SPLIT
#undef WORDS
#undef HEAD
#undef TAIL
#undef REST
struct Steps {
  const char *first, *last;
};
struct Known {
  const char* name;
  const char* normalizer;
  Steps steps;
  bool ignore_merges;
  bool bos;  // put in front unless the file says otherwise
};
constexpr Known kKnown[] = {
    {"gpt-2", "null", {"", kGpt2}, false, false},
    {"llama-bpe", "null", {kLlama3, kBytes}, true, true},
    {"lfm2", "null", {kLlama3, kBytes}, true, true},
    {"llama3", "null", {kLlama3, kBytes}, true, true},
    {"llama-v3", "null", {kLlama3, kBytes}, true, true},
    {"qwen2", kNfc, {kQwen2, kBytes}, false, false},
    {"qwen35", kNfc, {kQwen35, kBytes}, false, false},
    {"deepseek-r1-qwen", kNfc, {kQwen2, kBytes}, false, false},
    {"smollm", "null", {kDigits, kGpt2}, false, false},
    {"starcoder", "null", {kDigits, kGpt2}, false, false},
    {"refact", "null", {kDigits, kGpt2}, false, false},  // Granite 3's, too
    {"granite-docling", "null", {"", kGpt2}, false, false},
    {"olmo", kNfc, {"", kGpt2}, false, false},  // OLMoE's
    {"gpt-4o", "null", {kGpt4o, kBytes}, false, false},  // Phi-4-mini's
    {"dbrx", "null", {kLlama3, kBytes}, false, false},   // OLMo 2's
    {"smaug-bpe", "null", {kLlama3, kBytes}, false, false},
    {"chatglm-bpe", "null", {kLlama3, kBytes}, false, false},
    {"glm4", "null", {kLlama3, kBytes}, true, false},
    {"minimax-m2", "null", {kGpt4o, kBytes}, false, false},
};

}  // namespace

// By way of the tokenizer.json that the file was made of: what is known of those is known here.
Result<std::shared_ptr<const text::Tokenizer>> gguf_byte_bpe(const GgufFile& file) {
  std::string_view pre = "default";
  if (file.has("tokenizer.ggml.pre")) AERIE_TRY(file.text("tokenizer.ggml.pre", &pre));
  const auto known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == pre; });
  if (known == std::end(kKnown)) return refuse_tokenizer(file, "tokenizer.ggml.pre: \"" + std::string(pre) + "\" is not supported");
  AERIE_ASSIGN(const GgufVocabulary v, read_gguf_vocabulary(file));
  AERIE_ASSIGN(const std::string merges, gguf_merges(file));
  std::string vocab, added;
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const int32_t type = v.types[id];
    if (type == GgufVocabulary::kUnused) continue;
    if (!seen.insert(v.tokens[id]).second)
      return bad_tokenizer(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + ": is there twice");
    if (type == GgufVocabulary::kNormal) {
      vocab += (vocab.empty() ? "" : ",") + gguf_quoted(v.tokens[id]) + ":" + std::to_string(id);
    } else if (type == GgufVocabulary::kControl || type == GgufVocabulary::kUserDefined || type == GgufVocabulary::kUnknown) {
      added += (added.empty() ? "" : ",") + gguf_added_token(v, id);
    } else {
      return bad_tokenizer(file, "tokenizer.ggml.token_type: " + std::to_string(type) + " of token " + std::to_string(id));
    }
  }
  bool add_bos = known->bos;
  AERIE_TRY(file.boolean("tokenizer.ggml.add_bos_token", &add_bos, known->bos));
  int32_t bos = -1;
  if (add_bos) AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &bos));
  const std::string json = std::string(R"({"model":{"type":"BPE","ignore_merges":)") + (known->ignore_merges ? "true" : "false") +
                           ",\"vocab\":{" + vocab + "},\"merges\":[" + merges + "]},\"added_tokens\":[" + added +
                           "],\"normalizer\":" + known->normalizer + R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" +
                           known->steps.first + known->steps.last + "]},\"post_processor\":" + gguf_bos_template(bos) +
                           R"(,"decoder":{"type":"ByteLevel"}})";
  auto made = text::Tokenizer::from_hf_json(json);
  if (!made.ok()) return made.status().at(file.name() + ": tokenizer.ggml.*, read as a");
  return made;
}

}  // namespace aerie
