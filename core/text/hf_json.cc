// Hugging Face tokenizer.json. What is not known for certain is refused by name.
#include "core/text/hf_json.h"

#include <algorithm>
#include <new>

#include "core/platform/json_document.h"
#include "core/text/blob.h"

namespace aerie::text {
namespace hf {

Status refuse(const std::string& what) {
  return error(Code::unsupported, "tokenizer.json: " + what + " is not supported");
}
Status damaged(const std::string& what) { return error(Code::bad_format, "tokenizer.json: " + what); }

const Json& field(const Json& object, const char* key) {
  static const auto& null = *new Json;
  const auto at = object.find(key);
  return at == object.end() ? null : *at;
}
bool flag(const Json& object, const char* key, bool otherwise) {
  const Json& value = field(object, key);
  if (value.is_null()) return otherwise;
  return value.is_boolean() ? value.get<bool>() : throw WrongType{key, "is neither true nor false"};
}
const std::string& text_of(const Json& object, const char* key) {
  const Json& value = field(object, key);
  return value.is_string() ? value.get_ref<const std::string&>() : throw WrongType{key, "is not a text"};
}
int64_t id_of(const Json& value) {
  return value.is_number_integer() ? std::max<int64_t>(value.get<int64_t>(), -1) : -1;
}
std::string type_of(const Json& object) { return text_of(object, "type"); }

Status check_id(int64_t id, size_t tokens) {
  if (id < 0) return damaged("a token's id is no whole number from 0 on");
  if (id >= kMaxVocab || static_cast<size_t>(id) > 16 * tokens + 65536) return damaged("token id " + std::to_string(id));
  return {};
}

bool leave_out(const std::string& content, int64_t id, Tokenizer::Rows* rows) {
  if (id < rows->count) return false;
  if (rows->left_out.empty()) rows->left_out = content;
  return true;
}

Status check_bpe(const Json& model) {
  if (!model.is_object()) return damaged("no model");
  // GPT-2's own file is older than the "type" field.
  const std::string type = model.contains("type") ? type_of(model) : "BPE";
  if (type != "BPE") return refuse("model \"" + type + "\"");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = field(model, key);
    if (!value.is_null() && !value.get<std::string>().empty()) return refuse(std::string("model.") + key);
  }
  const Json& dropout = field(model, "dropout");
  if (!dropout.is_null() && dropout.get<double>() != 0) return refuse("model.dropout");
  return {};
}

Result<std::pair<std::string, std::string>> merge_of(const Json& merge) {
  if (merge.is_string()) {
    const std::string& text = merge.get_ref<const std::string&>();
    if (text.starts_with("#version")) return std::pair<std::string, std::string>();
    const size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return damaged("merge \"" + text + "\"");
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string())
    return damaged("model.merges: one is not a pair of texts");
  return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
}

Status read_post_processor(const Json& j, size_t vocab_size, int depth, int32_t* bos) {
  if (j.is_null()) return {};
  if (depth > kMaxNesting) return refuse("a deeply nested post_processor");
  const std::string type = type_of(j);
  if (type == "ByteLevel") return {};  // moves offsets, not ids
  if (type == "Sequence") {
    for (const Json& step : field(j, "processors")) AERIE_TRY(read_post_processor(step, vocab_size, depth + 1, bos));
    return {};
  }
  if (type != "TemplateProcessing") return refuse("post_processor \"" + type + "\"");
  const Json& single = field(j, "single");
  if (!single.is_array() || single.empty() || !single.back().contains("Sequence") || single.size() > 2) {
    return refuse("a post_processor \"TemplateProcessing\" that does more than put a BOS in front");
  }
  if (single.size() == 1) return {};
  if (!single[0].contains("SpecialToken") || *bos >= 0)
    return refuse("this post_processor \"TemplateProcessing\"");
  const std::string name = single[0]["SpecialToken"].at("id").get<std::string>();
  const Json& ids = field(j, "special_tokens").at(name).at("ids");
  if (ids.size() != 1) return refuse("a BOS of several tokens");
  const int64_t id = id_of(ids[0]);
  if (id < 0 || id >= static_cast<int64_t>(vocab_size))
    return damaged("BOS \"" + name + "\" is not a token");
  *bos = static_cast<int32_t>(id);
  return {};
}

}  // namespace hf

using namespace hf;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_hf_json(std::string_view json, Rows* rows) {
  Rows all;
  if (rows == nullptr) rows = &all;
  try {
    const platform::JsonDocument document(json);
    if (document.root().is_discarded()) return damaged("not JSON");
    const Json& root = document.root();
    if (!root.is_object()) return damaged("not a JSON object");
    const Json& model = field(root, "model");
    return model.is_object() && flag(model, "byte_fallback", false) ? hf::sentencepiece(root, rows) : hf::byte_bpe(root, rows);
  } catch (const WrongType& e) {
    return damaged(std::string(e.key) + ": " + e.what);
  } catch (const Json::exception& e) {  // deeper inside
    return damaged(e.what());
  } catch (const std::bad_alloc&) {
    return error(Code::out_of_memory, "tokenizer.json: no memory");
  }
}

}  // namespace aerie::text
