// A tokenizer.json with byte-level BPE -> ByteBpeSpec.
#include <optional>
#include <unordered_map>

#include "core/text/byte_bpe.h"
#include "core/text/hf_json.h"
#include "core/text/regex_dialect.h"
#include "core/platform/utf8.h"

namespace aerie::text {
namespace {

using namespace hf;
using Spec = ByteBpeSpec;

// GPT-2's way of writing bytes as printable characters, backwards: -1 is not a byte.
int byte_of(uint32_t c) {
  const auto printable = [](uint32_t b) { return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xFF && b != 0xAD); };
  if (c < 256) return printable(c) ? static_cast<int>(c) : -1;
  for (uint32_t b = 0, next = 256; b < 256; ++b) {
    if (!printable(b) && next++ == c) return static_cast<int>(b);
  }
  return -1;
}

std::optional<std::string> spelled(std::string_view token) {
  std::string bytes;
  while (!token.empty()) {
    const Utf8Step step = utf8_step(token);
    const int byte = step.kind == Utf8Kind::complete ? byte_of(step.codepoint) : -1;
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
    token.remove_prefix(step.length);
  }
  return bytes;
}

Status read_normalizer(const Json& j, int depth, Spec* spec) {
  if (j.is_null()) return {};
  if (depth > kMaxNesting) return refuse("a deeply nested normalizer");
  const std::string type = type_of(j);
  if (type == "NFC") {
    spec->nfc = true;
    return {};
  }
  if (type != "Sequence") return refuse("normalizer \"" + type + "\"");
  for (const Json& step : field(j, "normalizers")) AERIE_TRY(read_normalizer(step, depth + 1, spec));
  return {};
}

Status read_split(const Json& j, Spec* spec) {
  const Json& pattern = field(j, "pattern");
  if (!pattern.contains("Regex")) return refuse("pre_tokenizer \"Split\" without a Regex");
  const std::string behavior = text_of(j, "behavior");
  const bool invert = flag(j, "invert", false);
  // "Keep the matches, remove the rest" is the same as isolating where there is no rest.
  const bool same = behavior == "Removed" && invert && covers_all_text(text_of(pattern, "Regex"));
  if (!same && (behavior != "Isolated" || invert)) {
    return refuse("pre_tokenizer \"Split\" with behavior \"" + behavior + "\"" + (invert ? ", inverted," : ""));
  }
  spec->patterns.push_back(text_of(pattern, "Regex"));
  return {};
}

Status read_pre_tokenizer(const Json& j, Spec* spec) {
  if (j.is_null()) return refuse("a missing pre_tokenizer");
  const std::string whole = type_of(j);
  std::vector<const Json*> steps;
  if (whole == "Sequence") {
    for (const Json& step : field(j, "pretokenizers")) steps.push_back(&step);
  } else {
    steps.push_back(&j);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const Json& step = *steps[i];
    const std::string type = type_of(step);
    const bool last = i + 1 == steps.size();
    if (type == "Split" && !last) {
      AERIE_TRY(read_split(step, spec));
    } else if (type == "Digits" && !last) {
      spec->patterns.emplace_back(flag(step, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)");
    } else if (type == "ByteLevel" && last) {
      spec->prefix_space = flag(step, "add_prefix_space", true);
      if (spec->prefix_space && i > 0) return refuse("pre_tokenizer \"ByteLevel\" with add_prefix_space after another");
      if (flag(step, "use_regex", true)) spec->patterns.emplace_back(kGpt2Pattern);
    } else {
      return refuse("pre_tokenizer \"" + type + "\"" + (last ? " in the last place" : " before another"));
    }
  }
  if (steps.empty()) return refuse("an empty pre_tokenizer");
  return {};
}

using Ids = std::unordered_map<std::string, int32_t>;

Status place(int64_t id, size_t count_hint, Spec* spec, Spec::Token** out) {
  AERIE_TRY(check_id(id, count_hint));
  if (static_cast<size_t>(id) >= spec->tokens.size()) spec->tokens.resize(static_cast<size_t>(id) + 1);
  *out = &spec->tokens[static_cast<size_t>(id)];
  return {};
}

Status read_vocab(const Json& vocab, Ids* ids, Spec* spec) {
  if (!vocab.is_object()) return damaged("model.vocab is not an object");
  for (const auto& [text, value] : vocab.items()) {
    Spec::Token* token = nullptr;
    const auto id = id_of(value);
    AERIE_TRY(place(id, vocab.size(), spec, &token));
    if (token->flags != 0 || !token->bytes.empty())
      return damaged("token id " + std::to_string(id) + " is there twice");
    if (text.empty()) return damaged("an empty token");
    ids->emplace(text, static_cast<int32_t>(id));
    if (auto bytes = spelled(text)) {
      *token = {*std::move(bytes), Spec::kSpelled};
    } else {
      *token = {text, 0};  // cannot come out of the merges; decodes to itself
    }
  }
  return {};
}

Status read_merges(const Json& merges, const Ids& ids, Spec* spec) {
  if (!merges.is_array()) return damaged("model.merges is not an array");
  for (const Json& merge : merges) {
    AERIE_ASSIGN(const auto pair, merge_of(merge));
    const auto& [left, right] = pair;
    if (left.empty() && right.empty()) continue;
    const auto l = ids.find(left), r = ids.find(right);
    if (l == ids.end() || r == ids.end()) return damaged("merge \"" + left + " " + right + "\" of what is not a token");
    spec->merges.emplace_back(l->second, r->second);
  }
  return {};
}

Status read_model(const Json& model, Ids* ids, Spec* spec) {
  AERIE_TRY(check_bpe(model));
  spec->ignore_merges = flag(model, "ignore_merges", false);
  AERIE_TRY(read_vocab(field(model, "vocab"), ids, spec));
  return read_merges(field(model, "merges"), *ids, spec);
}

Status read_added_tokens(const Json& added, const Ids& ids, Tokenizer::Rows* rows, Spec* spec) {
  if (added.is_null()) return {};
  const size_t hint = ids.size() + added.size();
  for (const Json& j : added) {
    const std::string content = text_of(j, "content");
    const auto id = id_of(field(j, "id"));
    if (content.empty()) continue;
    if (flag(j, "single_word", false)) return refuse("added token \"" + content + "\" with single_word");
    const bool special = flag(j, "special", false);
    const auto known = ids.find(content);
    if (special && known == ids.end() && leave_out(content, id, rows)) continue;
    Spec::Token* token = nullptr;
    AERIE_TRY(place(id, hint, spec, &token));
    const bool taken = token->flags != 0 || !token->bytes.empty();
    if (known != ids.end() ? known->second != id : taken) {
      return damaged("added token \"" + content + "\" does not fit the vocabulary");
    }
    // It stands for its text as written; the vocabulary's byte spelling stays only where both agree.
    const bool same = (token->flags & Spec::kSpelled) != 0 && token->bytes == content;
    token->bytes = content;
    token->flags = static_cast<uint8_t>((same ? Spec::kSpelled : 0) | Spec::kAdded | (special ? Spec::kSpecial : 0) |
                                        (flag(j, "lstrip", false) ? Spec::kLstrip : 0) |
                                        (flag(j, "rstrip", false) ? Spec::kRstrip : 0) |
                                        (flag(j, "normalized", !special) ? Spec::kNormalized : 0));
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> hf::byte_bpe(const Json& root, Tokenizer::Rows* rows) {
  Spec spec;
  Ids ids;
  AERIE_TRY(read_model(field(root, "model"), &ids, &spec));
  AERIE_TRY(read_added_tokens(field(root, "added_tokens"), ids, rows, &spec));
  AERIE_TRY(read_normalizer(field(root, "normalizer"), 0, &spec));
  AERIE_TRY(read_pre_tokenizer(field(root, "pre_tokenizer"), &spec));
  AERIE_TRY(read_post_processor(field(root, "post_processor"), spec.tokens.size(), 0, &spec.bos));
  const Json& decoder = field(root, "decoder");
  const std::string type = decoder.is_null() ? "none" : type_of(decoder);
  if (type != "ByteLevel") return refuse("decoder \"" + type + "\"");
  // "truncation" and "padding" are left over from training: no caller of a runtime wants them.
  return ByteBpe::make(std::move(spec));
}

}  // namespace aerie::text
