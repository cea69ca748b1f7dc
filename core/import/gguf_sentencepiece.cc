// The SentencePiece BPE of GGUF files: pieces with scores.
#include <algorithm>

#include "core/import/gguf_vocabulary.h"
#include "core/text/sentencepiece.h"

namespace aerie {
namespace {

using text::SentencePiece;

SentencePiece::Type piece_type(int32_t type) {
  switch (type) {
    case GgufVocabulary::kByte:
      return SentencePiece::Type::byte;
    case GgufVocabulary::kUserDefined:
      return SentencePiece::Type::user;
    case GgufVocabulary::kNormal:
      return SentencePiece::Type::normal;
    default:
      return SentencePiece::Type::control;
  }
}

// The tokens that are special whatever type they have; -1: none.
struct Named {
  int32_t bos = 1, eos = 2, unknown = 0;
};

Result<Named> read_named(const GgufFile& file, size_t tokens) {
  Named n;
  for (const auto& [name, id] : {std::pair{"bos", &n.bos}, {"eos", &n.eos}, {"unknown", &n.unknown}}) {
    const std::string key = std::string("tokenizer.ggml.") + name + "_token_id";
    AERIE_TRY(file.integer(key, id, *id));
    if (*id < -1 || *id >= static_cast<int64_t>(tokens))
      return bad_tokenizer(file, key + ": " + std::to_string(*id) + " of " + std::to_string(tokens) + " tokens");
  }
  return n;
}

// As llama.cpp does it: the space in front, of what follows a control token, too; U+2581 is one.
Result<SentencePiece::Rules> read_rules(const GgufFile& file, int32_t bos) {
  SentencePiece::Rules rules{.prefix = SentencePiece::Rules::Prefix::every, .meta = true};
  bool squeezes = false;
  AERIE_TRY(file.boolean("tokenizer.ggml.add_space_prefix", &rules.strips, true));
  AERIE_TRY(file.boolean("tokenizer.ggml.add_bos_token", &rules.bos, true));
  AERIE_TRY(file.boolean("tokenizer.ggml.remove_extra_whitespaces", &squeezes, false));
  if (squeezes) return refuse_tokenizer(file, "tokenizer.ggml.remove_extra_whitespaces: true is not supported");
  if (!rules.strips) rules.prefix = SentencePiece::Rules::Prefix::none;
  if (bos == -1) rules.bos = false;
  else rules.bos_id = bos;
  return rules;
}

// The file does not say it, Phi-3's tokenizer.json does: its added tokens swallow the white space behind them, but for these.
Status read_stripping(const GgufFile& file, const GgufVocabulary& v, std::vector<SentencePiece::Piece>* pieces) {
  std::string_view architecture;
  if (file.has("general.architecture")) AERIE_TRY(file.text("general.architecture", &architecture));
  if (architecture != "phi3") return {};
  static constexpr std::string_view kNot[] = {"<unk>", "<s>", "<|endoftext|>"};
  for (size_t id = 0; id < pieces->size(); ++id) {
    SentencePiece::Piece& p = (*pieces)[id];
    p.rstrip = (p.type == SentencePiece::Type::control || p.type == SentencePiece::Type::user) &&
               std::find(std::begin(kNot), std::end(kNot), v.tokens[id]) == std::end(kNot);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const text::Tokenizer>> gguf_sentencepiece(const GgufFile& file) {
  AERIE_ASSIGN(const GgufVocabulary v, read_gguf_vocabulary(file));
  AERIE_ASSIGN(const std::vector<float> scores, file.numbers("tokenizer.ggml.scores"));
  if (scores.size() != v.tokens.size())
    return bad_tokenizer(file, "tokenizer.ggml.scores: " + std::to_string(scores.size()) + " of " +
                                   std::to_string(v.tokens.size()) + " tokens");
  AERIE_ASSIGN(const Named named, read_named(file, v.tokens.size()));
  AERIE_ASSIGN(const SentencePiece::Rules rules, read_rules(file, named.bos));
  std::vector<SentencePiece::Piece> pieces(v.tokens.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    SentencePiece::Piece& piece = pieces[id];
    piece.score = scores[id];
    if (v.types[id] == GgufVocabulary::kUnused) continue;  // matches nothing, gives nothing
    piece.bytes = v.tokens[id];
    piece.type = piece_type(v.types[id]);
    for (const int32_t special : {named.bos, named.eos, named.unknown})
      if (static_cast<int64_t>(id) == special) piece.type = SentencePiece::Type::control;
    // Gemma's runs of spaces, of which U+2581 is one. Where a space is put in front, llama.cpp looks for them before that.
    piece.normalized = piece.type == SentencePiece::Type::user && rules.prefix == SentencePiece::Rules::Prefix::none;
  }
  if (!file.has("tokenizer.ggml.token_type")) {
    const Status s = SentencePiece::assume_types(&pieces);
    if (!s.ok()) return s.at(file.name() + ": tokenizer.ggml.tokens");
  }
  for (SentencePiece::Piece& piece : pieces)
    if (piece.type == SentencePiece::Type::normal) piece.bytes = text::with_spaces(piece.bytes);
  AERIE_TRY(read_stripping(file, v, &pieces));
  auto made = SentencePiece::make(std::move(pieces), rules);
  if (made.status().code() == Code::unsupported) return refuse_tokenizer(file, "tokenizer.ggml.tokens: " + made.status().message());
  if (!made.ok()) return made.status().at(file.name() + ": tokenizer.ggml.tokens");
  return made;
}

}  // namespace aerie
