// What the readers of a Hugging Face tokenizer.json share (core/text alone).
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/tokenizer.h"

namespace aerie::text::hf {

using Json = nlohmann::json;

// How deep "Sequence" may nest: hostile files must not cost stack.
inline constexpr int kMaxNesting = 4;

Status refuse(const std::string& what);   // "... is not supported"
Status damaged(const std::string& what);

// A field of another type than it should have: it is named.
struct WrongType {
  const char* key;
  const char* what;
};
const Json& field(const Json& object, const char* key);  // null when it is not there
bool flag(const Json& object, const char* key, bool otherwise);      // throws WrongType, as the next two
const std::string& text_of(const Json& object, const char* key);
std::string type_of(const Json& object);
// An id; -1 when it is none (a fraction, or past what fits).
int64_t id_of(const Json& value);
// Ids may have holes, but a single huge id must not cost memory that the file does not pay for: `tokens` are in it.
Status check_id(int64_t id, size_t tokens);
// Whether the model has no row for an added token, which is then left out.
bool leave_out(const std::string& content, int64_t id, Tokenizer::Rows* rows);
// "a b", as files had it before tokenizers 0.20, or ["a", "b"]. Two empty texts: a comment.
Result<std::pair<std::string, std::string>> merge_of(const Json& merge);
// That `model` is BPE without what no runtime needs.
Status check_bpe(const Json& model);
// The token that the post-processor puts in front, in `*bos`; one that does more is refused.
Status read_post_processor(const Json& j, size_t vocab_size, int depth, int32_t* bos);

// By model.byte_fallback. Throw WrongType or Json::exception where a value is of another type than it should have.
Result<std::shared_ptr<const Tokenizer>> byte_bpe(const Json& root, Tokenizer::Rows* rows);
Result<std::shared_ptr<const Tokenizer>> sentencepiece(const Json& root, Tokenizer::Rows* rows);

}  // namespace aerie::text::hf
