// A tokenizer.json with BPE and byte fallback, as transformers makes of SentencePiece models -> SentencePiece.
#include <unordered_map>

#include "core/text/hf_json.h"
#include "core/text/sentencepiece.h"
#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

using namespace hf;
using Piece = SentencePiece::Piece;
using Rules = SentencePiece::Rules;
using Type = SentencePiece::Type;

bool is(const Json& object, const char* key, const char* text) { return text_of(object, key) == text; }
bool is_text(const Json& pattern, const char* text) {
  return pattern.is_object() && pattern.contains("String") && is(pattern, "String", text);
}
bool replaces(const Json& j, const char* what, const char* with) { return is_text(field(j, "pattern"), what) && is(j, "content", with); }

struct Spaces {
  bool replaced = false;  // written as U+2581
  Rules rules;
};

Status read_normalizer(const Json& j, int depth, Spaces* s) {
  if (j.is_null()) return {};
  if (depth > kMaxNesting) return refuse("a deeply nested normalizer");
  const std::string type = type_of(j);
  if (type == "Sequence") {
    for (const Json& step : field(j, "normalizers")) AERIE_TRY(read_normalizer(step, depth + 1, s));
    return {};
  }
  if (type == "Prepend" && is(j, "prepend", kMeta) && s->rules.prefix == Rules::Prefix::none) {
    s->rules.prefix = Rules::Prefix::every;
  } else if (type == "Replace" && replaces(j, " ", kMeta)) {
    s->replaced = true;
  } else {
    return refuse("this normalizer \"" + type + "\"");
  }
  return {};
}

Status read_pre_tokenizer(const Json& j, Spaces* s) {
  if (j.is_null()) return {};
  const std::string type = type_of(j);
  // Gemma's, which finds no space where the normalizer has left none.
  if (type == "Split" && s->replaced && is_text(field(j, "pattern"), " ")) return {};
  if (type != "Metaspace" || !is(j, "replacement", kMeta)) return refuse("pre_tokenizer \"" + type + "\" with byte_fallback");
  if (flag(j, "split", true)) return refuse("pre_tokenizer \"Metaspace\" with split");
  if (s->replaced) return refuse("pre_tokenizer \"Metaspace\" after a normalizer that replaces spaces, too,");
  s->replaced = true;
  s->rules.before = false;
  const std::string scheme = j.contains("prepend_scheme") ? text_of(j, "prepend_scheme") : "always";
  if (scheme == "never") return {};
  if (s->rules.prefix != Rules::Prefix::none) return refuse("pre_tokenizer \"Metaspace\" after a normalizer that prepends, too,");
  if (scheme != "first" && scheme != "always") return damaged("prepend_scheme: \"" + scheme + "\"");
  s->rules.prefix = scheme == "first" ? Rules::Prefix::first : Rules::Prefix::every;
  return {};
}

Status read_decoder(const Json& j, Rules* rules) {
  const std::string type = j.is_null() ? "none" : type_of(j);
  if (type != "Sequence") return refuse("decoder \"" + type + "\" with byte_fallback");
  bool replaces_meta = false, bytes = false;
  for (const Json& step : field(j, "decoders")) {
    const std::string name = type_of(step);
    if (name == "Replace" && replaces(step, kMeta, " ")) {
      replaces_meta = true;
    } else if (name == "ByteFallback") {
      bytes = true;
    } else if (name == "Strip" && is(step, "content", " ") && field(step, "start") == 1 && field(step, "stop") == 0) {
      rules->strips = true;
    } else if (name != "Fuse") {
      return refuse("this decoder \"" + name + "\"");
    }
  }
  return replaces_meta && bytes ? Status() : refuse("a decoder without U+2581 or bytes");
}

using Ids = std::unordered_map<std::string, int32_t>;

Status place(int64_t id, size_t tokens, std::vector<Piece>* pieces, Piece** out) {
  AERIE_TRY(check_id(id, tokens));
  if (static_cast<size_t>(id) >= pieces->size()) pieces->resize(static_cast<size_t>(id) + 1);
  *out = &(*pieces)[static_cast<size_t>(id)];
  return {};
}

Status read_vocab(const Json& vocab, std::vector<Piece>* pieces, Ids* ids) {
  if (!vocab.is_object()) return damaged("model.vocab is not an object");
  for (const auto& [text, value] : vocab.items()) {
    const int64_t id = id_of(value);
    Piece* piece = nullptr;
    AERIE_TRY(place(id, vocab.size(), pieces, &piece));
    if (!piece->bytes.empty()) return damaged("token id " + std::to_string(id) + " is there twice");
    if (text.empty()) return damaged("an empty token");
    ids->emplace(text, static_cast<int32_t>(id));
    *piece = {text};
    if (text.size() == 6 && text.starts_with("<0x") && text.back() == '>') piece->type = Type::byte;
  }
  return {};
}

Status read_added_tokens(const Json& added, const Rules& rules, const Ids& ids, Tokenizer::Rows* rows, std::vector<Piece>* pieces) {
  if (added.is_null()) return {};
  const size_t tokens = ids.size() + added.size();
  for (const Json& j : added) {
    const std::string content = text_of(j, "content");
    const int64_t id = id_of(field(j, "id"));
    if (content.empty()) continue;
    if (flag(j, "single_word", false)) return refuse("added token \"" + content + "\" with single_word");
    const bool special = flag(j, "special", false);
    const auto known = ids.find(content);
    if (special && known == ids.end() && leave_out(content, id, rows)) continue;
    Piece* piece = nullptr;
    AERIE_TRY(place(id, tokens, pieces, &piece));
    if (known != ids.end() ? known->second != id : !piece->bytes.empty())
      return damaged("added token \"" + content + "\" does not fit the vocabulary");
    *piece = {content, 0, special ? Type::control : Type::user, flag(j, "lstrip", false), flag(j, "rstrip", false),
              flag(j, "normalized", !special)};
    // A text has no U+2581 before spaces have become that: such a token comes of merges, but where a text has U+2581 itself.
    const bool has_meta = content.find(kMeta) != std::string::npos && content.find(' ') == std::string::npos;
    if (!special && !piece->normalized && known != ids.end() && has_meta) {
      piece->merged = true;
      piece->bytes = with_spaces(content);
    }
    if (!piece->normalized || !rules.before) continue;
    // What is done to the text is done to the token that is looked for in it.
    piece->bytes = (rules.prefix == Rules::Prefix::every ? " " : "") + with_spaces(content);
    if (piece->lstrip || piece->rstrip) return refuse("added token \"" + content + "\", normalized and stripping,");
  }
  return {};
}

Status read_merges(const Json& merges, const Ids& ids, const std::vector<Piece>& pieces, MergeList* out) {
  if (!merges.is_array()) return damaged("model.merges is not an array");
  const auto spelled = [&](Ids::const_iterator at) {
    const Piece& p = pieces[static_cast<size_t>(at->second)];
    return p.type == Type::normal || p.merged;
  };
  const auto only_merged = [&](Ids::const_iterator at) {
    const Piece& p = pieces[static_cast<size_t>(at->second)];
    return !spelled(at) && !p.normalized && at->first.find(kMeta) != std::string::npos;
  };
  for (const Json& merge : merges) {
    AERIE_ASSIGN(const auto pair, merge_of(merge));
    const auto& [left, right] = pair;
    if (left.empty() && right.empty()) continue;
    const auto l = ids.find(left), r = ids.find(right), joined = ids.find(left + right);
    if (l == ids.end() || r == ids.end() || joined == ids.end())
      return damaged("merge \"" + left + " " + right + "\" of what is not a token");
    // Added tokens are found before there is anything to merge, and bytes join with nothing.
    if (spelled(l) && spelled(r) && spelled(joined)) {
      out->emplace_back(l->second, r->second);
      continue;
    }
    for (const auto& at : {l, r, joined})
      if (only_merged(at)) return refuse("added token \"" + at->first + "\", which is looked for in the text as it is, with merges,");
  }
  if (out->empty()) return refuse("byte_fallback without merges");  // without them the scores would count
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> hf::sentencepiece(const Json& root, Tokenizer::Rows* rows) {
  const Json& model = field(root, "model");
  AERIE_TRY(check_bpe(model));
  if (flag(model, "ignore_merges", false)) return refuse("model.ignore_merges with byte_fallback");
  Spaces spaces;
  spaces.rules = {.prefix = Rules::Prefix::none, .before = true, .strips = false, .meta = true, .bos = false};
  AERIE_TRY(read_normalizer(field(root, "normalizer"), 0, &spaces));
  AERIE_TRY(read_pre_tokenizer(field(root, "pre_tokenizer"), &spaces));
  if (!spaces.replaced) return refuse("byte_fallback without spaces as U+2581");
  AERIE_TRY(read_decoder(field(root, "decoder"), &spaces.rules));
  std::vector<Piece> pieces;
  Ids ids;
  AERIE_TRY(read_vocab(field(model, "vocab"), &pieces, &ids));
  AERIE_TRY(read_added_tokens(field(root, "added_tokens"), spaces.rules, ids, rows, &pieces));
  MergeList merges;
  AERIE_TRY(read_merges(field(model, "merges"), ids, pieces, &merges));
  int32_t bos = -1;
  AERIE_TRY(read_post_processor(field(root, "post_processor"), pieces.size(), 0, &bos));
  spaces.rules.bos = bos >= 0;
  if (bos >= 0) spaces.rules.bos_id = bos;
  for (Piece& piece : pieces) {
    if (piece.type == Type::normal) piece.bytes = with_spaces(piece.bytes);
  }
  Result<std::shared_ptr<const Tokenizer>> made = SentencePiece::make(std::move(pieces), spaces.rules, std::move(merges));
  if (!made.ok()) return made.status().at("tokenizer.json");
  return made;
}

}  // namespace aerie::text
