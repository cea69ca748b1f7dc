// Chat templates: the C door of core/text/template.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/src/guard.h"
#include "capi/src/text/tokenizer_handle.h"
#include "core/text/template/template.h"

struct aerie_chat_template {
  std::shared_ptr<const aerie::text::chat::Template> chat_template;
  std::optional<std::string> bos_token, eos_token;
};

namespace {

using aerie::Code;
using aerie::error;
using aerie::Status;
using aerie::capi::guard;
using aerie::capi::require;

std::optional<std::string> text_of_token(const aerie_tokenizer& tokenizer, int32_t id) {
  const std::string_view text = tokenizer.tokenizer->token_text(id);
  return text.empty() ? std::nullopt : std::optional<std::string>(text);
}

}  // namespace

int32_t aerie_chat_template_create(const char* text, size_t size, const aerie_tokenizer* tokenizer, const aerie_model_info* info,
                                   aerie_chat_template** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(out, "out"));
    if (size == 0) return error(Code::not_found, "the package has no chat template");
    AERIE_TRY(require(text, "text"));
    aerie_model_info model;
    AERIE_TRY(aerie::capi::read_struct(info, &model, "aerie_model_info"));
    auto made = std::make_unique<aerie_chat_template>();
    AERIE_ASSIGN(made->chat_template, aerie::text::chat::Template::make({text, size}));
    if (tokenizer != nullptr && info != nullptr) {
      made->bos_token = text_of_token(*tokenizer, model.bos_id);
      if (model.n_eos > 0 && model.eos_ids != nullptr) made->eos_token = text_of_token(*tokenizer, model.eos_ids[0]);
    }
    *out = made.release();
    return {};
  });
}

void aerie_chat_template_release(aerie_chat_template* chat_template) { delete chat_template; }

int32_t aerie_chat_template_render(const aerie_chat_template* chat_template, const aerie_chat_options* options, char* out,
                                   size_t capacity, size_t* size, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(chat_template, "chat_template"));
    AERIE_TRY(require(options, "options"));
    AERIE_TRY(require(size, "size"));
    if (capacity > 0) AERIE_TRY(require(out, "out"));
    aerie_chat_options o;
    AERIE_TRY(aerie::capi::read_struct(options, &o, "aerie_chat_options"));
    if (o.n_messages < 0) return error(Code::invalid_argument, "n_messages is negative");
    if (o.n_messages > 0) AERIE_TRY(require(o.messages, "messages"));
    if (o.n_messages > 0 && o.messages_json != nullptr)
      return error(Code::invalid_argument, "messages and messages_json are both given");
    std::vector<aerie::text::chat::Message> messages;
    for (int32_t i = 0; i < o.n_messages; ++i) {
      AERIE_TRY(require(o.messages[i].role, "the role of a message"));
      AERIE_TRY(require(o.messages[i].content, "the content of a message"));
      messages.push_back({o.messages[i].role, o.messages[i].content});
    }
    aerie::text::chat::Conversation conversation;
    conversation.messages = messages;
    if (o.messages_json != nullptr) conversation.messages_json = o.messages_json;
    if (o.tools_json != nullptr) conversation.tools_json = o.tools_json;
    if (o.variables_json != nullptr) conversation.variables_json = o.variables_json;
    conversation.add_generation_prompt = o.add_generation_prompt != 0;
    if (chat_template->bos_token) conversation.bos_token = *chat_template->bos_token;
    if (chat_template->eos_token) conversation.eos_token = *chat_template->eos_token;
    AERIE_ASSIGN(const std::string text, chat_template->chat_template->render(conversation));
    *size = text.size();
    if (text.size() > capacity) {
      return error(Code::limit, "the text has " + std::to_string(text.size()) + " bytes, there is room for " + std::to_string(capacity));
    }
    std::copy(text.begin(), text.end(), out);
    return {};
  });
}
