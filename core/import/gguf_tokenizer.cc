#include "core/import/gguf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/text/sentencepiece.h"
#include "core/platform/utf8.h"

namespace aerie {

namespace {

using Texts = std::vector<std::string_view>;
using Made = Result<std::shared_ptr<const text::Tokenizer>>;

enum Type : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Vocabulary {
  Texts tokens;
  std::vector<int32_t> types;
};

Status bad(const GgufFile& file, const std::string& what) { return error(Code::bad_format, file.name() + ": " + what); }
Status refuse(const GgufFile& file, const std::string& what) {
  return error(Code::unsupported, file.name() + ": " + what + "; --tokenizer takes a tokenizer.json instead, or \"none\"");
}

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
  Vocabulary v;
  AERIE_ASSIGN(v.tokens, file.texts("tokenizer.ggml.tokens"));
  v.types.assign(v.tokens.size(), kNormal);
  if (file.has("tokenizer.ggml.token_type")) {
    AERIE_ASSIGN(auto types, file.integers("tokenizer.ggml.token_type"));
    v.types.swap(types);
  }
  if (v.types.size() != v.tokens.size())
    return bad(file, "tokenizer.ggml.token_type: " + std::to_string(v.types.size()) + " types of " +
                         std::to_string(v.tokens.size()) + " tokens");
  if (v.tokens.size() > text::kMaxVocab) return bad(file, "tokenizer.ggml.tokens: " + std::to_string(v.tokens.size()) + " of them");
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const auto wrong = [&](const std::string& what) { return bad(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + ": " + what); };
    if (v.types[id] < kNormal || v.types[id] > kByte) return wrong("type " + std::to_string(v.types[id]));
    if (v.tokens[id].size() > text::kMaxTokenBytes) return wrong(std::to_string(v.tokens[id].size()) + " bytes");
    if (utf8_valid_prefix(v.tokens[id]) != v.tokens[id].size()) return wrong("is not UTF-8");
  }
  return v;
}

// The model names a pre-tokenizer; what it does is written down in llama.cpp (llama-vocab.cpp) and in the tokenizer.json of the
// models that gave it its name.
#define SPLIT(regex) R"({"type":"Split","pattern":{"Regex":")" regex R"("},"behavior":"Isolated","invert":false},)"
#define WORDS R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|)"
#define REST R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)"
constexpr const char* kBytes = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";
constexpr const char* kGpt2 = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
constexpr const char* kDigits = R"({"type":"Digits","individual_digits":true},)";
constexpr const char* kLlama3 = SPLIT(WORDS R"(\\p{N}{1,3})" REST);
constexpr const char* kQwen2 = SPLIT(WORDS R"(\\p{N})" REST);
constexpr const char* kNfc = R"({"type":"NFC"})";
#undef SPLIT
#undef WORDS
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
    {"llama3", "null", {kLlama3, kBytes}, true, true},
    {"llama-v3", "null", {kLlama3, kBytes}, true, true},
    {"qwen2", kNfc, {kQwen2, kBytes}, false, false},
    {"deepseek-r1-qwen", kNfc, {kQwen2, kBytes}, false, false},
    {"smollm", "null", {kDigits, kGpt2}, false, false},
};

// As JSON. Merges that are not UTF-8 become merges of what is not a token.
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// By way of the tokenizer.json that the file was made of: what is known of those is known here.
Made byte_bpe(const GgufFile& file) {
  std::string_view pre = "default";
  if (file.has("tokenizer.ggml.pre")) AERIE_TRY(file.text("tokenizer.ggml.pre", &pre));
  const auto known = std::find_if(std::begin(kKnown), std::end(kKnown), [&](const Known& k) { return k.name == pre; });
  if (known == std::end(kKnown)) return refuse(file, "tokenizer.ggml.pre: \"" + std::string(pre) + "\" is not supported");
  AERIE_ASSIGN(const Vocabulary v, read_vocabulary(file));
  AERIE_ASSIGN(const Texts merges, file.texts("tokenizer.ggml.merges"));

  if (merges.size() > text::kMaxMerges) return bad(file, "tokenizer.ggml.merges: " + std::to_string(merges.size()) + " of them");

  std::string vocab, added, pairs;
  std::unordered_set<std::string_view> seen;
  for (size_t id = 0; id < v.tokens.size(); ++id) {
    const int32_t type = v.types[id];
    if (type == kUnused) continue;
    if (!seen.insert(v.tokens[id]).second) return bad(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + ": is there twice");
    if (type == kNormal) {
      vocab += (vocab.empty() ? "" : ",") + quoted(v.tokens[id]) + ":" + std::to_string(id);
    } else if (type == kControl || type == kUserDefined || type == kUnknown) {
      added += (added.empty() ? "" : ",") + std::string("{\"id\":") + std::to_string(id) + ",\"content\":" + quoted(v.tokens[id]) +
               ",\"normalized\":false,\"special\":" + (type == kUserDefined ? "false}" : "true}");
    } else {
      return bad(file, "tokenizer.ggml.token_type: " + std::to_string(type) + " of token " + std::to_string(id));
    }
  }
  for (const std::string_view merge : merges) pairs += (pairs.empty() ? "" : ",") + quoted(merge);
  std::string post = "null";
  bool add_bos = known->bos;
  AERIE_TRY(file.boolean("tokenizer.ggml.add_bos_token", &add_bos, known->bos));
  int32_t bos = -1;
  if (add_bos) AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &bos));
  if (bos >= 0) {
    post = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"bos","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],)"
           R"("pair":[],"special_tokens":{"bos":{"id":"bos","ids":[)" +
           std::to_string(bos) + R"(],"tokens":["bos"]}}})";
  }
  const std::string json = std::string(R"({"model":{"type":"BPE","ignore_merges":)") + (known->ignore_merges ? "true" : "false") +
                           ",\"vocab\":{" + vocab + "},\"merges\":[" + pairs + "]},\"added_tokens\":[" + added +
                           "],\"normalizer\":" + known->normalizer + R"(,"pre_tokenizer":{"type":"Sequence","pretokenizers":[)" +
                           known->steps.first + known->steps.last + "]},\"post_processor\":" + post +
                           R"(,"decoder":{"type":"ByteLevel"}})";
  Made made = text::Tokenizer::from_hf_json(json);
  if (!made.ok()) return made.status().at(file.name() + ": tokenizer.ggml.*, read as a");
  return made;
}

// Pieces with scores.
Made sentencepiece(const GgufFile& file) {
  AERIE_ASSIGN(const Vocabulary v, read_vocabulary(file));
  AERIE_ASSIGN(const std::vector<float> scores, file.numbers("tokenizer.ggml.scores"));
  if (scores.size() != v.tokens.size())
    return bad(file, "tokenizer.ggml.scores: " + std::to_string(scores.size()) + " of " + std::to_string(v.tokens.size()) + " tokens");
  // As llama.cpp does it: the space in front, of what follows a control token, too; U+2581 is one.
  text::SentencePiece::Rules rules{.prefix = text::SentencePiece::Rules::Prefix::every, .meta = true};
  bool prefix = true, squeezes = false;
  AERIE_TRY(file.boolean("tokenizer.ggml.add_space_prefix", &prefix, true));
  AERIE_TRY(file.boolean("tokenizer.ggml.add_bos_token", &rules.bos, true));
  AERIE_TRY(file.boolean("tokenizer.ggml.remove_extra_whitespaces", &squeezes, false));
  if (squeezes) return refuse(file, "tokenizer.ggml.remove_extra_whitespaces: true is not supported");
  if (!prefix) rules.prefix = text::SentencePiece::Rules::Prefix::none;
  rules.strips = prefix;
  int32_t bos = 1;
  AERIE_TRY(file.integer("tokenizer.ggml.bos_token_id", &bos, 1));
  if (bos == -1) rules.bos = false;
  else if (bos != 1) return refuse(file, "tokenizer.ggml.bos_token_id: " + std::to_string(bos) + " (1 is supported)");
  for (const auto& [id, usual] : {std::pair<size_t, const char*>{1, "<s>"}, {2, "</s>"}})
    if (v.tokens.size() <= id || v.tokens[id] != usual)
      return refuse(file, "tokenizer.ggml.tokens: token " + std::to_string(id) + " is not \"" + usual + "\"");
  using Piece = text::SentencePiece::Piece;
  std::vector<Piece> pieces(v.tokens.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    Piece& piece = pieces[id];
    piece.score = scores[id];
    if (v.types[id] == kUnused) continue;  // matches nothing, gives nothing
    piece.bytes = v.tokens[id];
    piece.type = v.types[id] == kByte          ? text::SentencePiece::Type::byte
                 : v.types[id] == kUserDefined ? text::SentencePiece::Type::user
                 : v.types[id] == kNormal      ? text::SentencePiece::Type::normal
                                               : text::SentencePiece::Type::control;
    if (id <= 2) piece.type = text::SentencePiece::Type::control;
    if (piece.type == text::SentencePiece::Type::normal) piece.bytes = text::with_spaces(v.tokens[id]);
  }
  if (!file.has("tokenizer.ggml.token_type")) {
    const Status s = text::SentencePiece::assume_types(&pieces);
    if (!s.ok()) return s.at(file.name() + ": tokenizer.ggml.tokens");
    for (Piece& piece : pieces)
      if (piece.type == text::SentencePiece::Type::normal) piece.bytes = text::with_spaces(piece.bytes);
  }
  Made made = text::SentencePiece::make(std::move(pieces), rules);
  if (!made.ok()) return made.status().at(file.name() + ": tokenizer.ggml.tokens");
  return made;
}

}  // namespace

Made gguf_tokenizer(const GgufFile& file) {
  if (!file.has("tokenizer.ggml.model")) return Made(nullptr);
  std::string_view model;
  AERIE_TRY(file.text("tokenizer.ggml.model", &model));
  if (model == "no_vocab" || model == "none") return Made(nullptr);
  if (model == "gpt2") return byte_bpe(file);
  if (model == "llama") return sentencepiece(file);
  return refuse(file, "tokenizer.ggml.model: \"" + std::string(model) + "\" is not supported");
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
  AERIE_ASSIGN(const Texts tokens, file.texts("tokenizer.ggml.tokens"));
  for (const std::string_view end : {"<|eot_id|>", "<|im_end|>", "<|endoftext|>", "<|eom_id|>", "<|end|>", "<|end_of_text|>", "<EOT>"})
    if (const auto at = std::find(tokens.begin(), tokens.end(), end); at != tokens.end()) add(static_cast<int32_t>(at - tokens.begin()));
  return {};
}

}  // namespace aerie
