#include "core/text/template/template.h"

#include <utility>

#include "core/platform/clock.h"
#include "core/platform/utf8.h"
#include "core/text/template/json_read.h"
#include "core/text/template/machine.h"
#include "core/text/template/parser.h"

namespace aerie::text::chat {
namespace {

Status check_utf8(const char* what, std::string_view text) {
  return utf8_valid_prefix(text) == text.size() ? Status() : error(Code::invalid_argument, std::string(what) + ": not UTF-8");
}

Result<Value> text_value(Heap* heap, const char* what, std::string_view text) {
  AERIE_TRY(check_utf8(what, text));
  return Value::string(heap, std::string(text));
}

Result<Value> messages_of(Heap* heap, const Conversation& conversation) {
  if (conversation.messages_json) {
    AERIE_ASSIGN(Value messages, read_json(heap, "messages", *conversation.messages_json));
    if (!messages.is(Kind::list)) return error(Code::invalid_argument, "messages: a list of objects is wanted");
    // What is null is left out, as by transformers: OpenAI's "content": null beside tool calls is no text "None".
    Ref<List> list = make<List>(heap);
    for (const Value& message : messages.list().items) {
      if (!message.is(Kind::dict)) return error(Code::invalid_argument, "messages: a list of objects is wanted");
      Ref<Dict> dict = make<Dict>(heap);
      for (const auto& [key, value] : message.dict().members)
        if (!value.is(Kind::none)) dict->set(key, value);
      list->add(dict_value(std::move(dict)));
    }
    return list_value(Kind::list, std::move(list));
  }
  Ref<List> list = make<List>(heap);
  for (const Message& message : conversation.messages) {
    Ref<Dict> dict = make<Dict>(heap);
    AERIE_ASSIGN(Value role, text_value(heap, "role", message.role));
    AERIE_ASSIGN(Value content, text_value(heap, "content", message.content));
    dict->set(Value::string("role"), std::move(role));
    dict->set(Value::string("content"), std::move(content));
    list->add(dict_value(std::move(dict)));
  }
  return list_value(Kind::list, std::move(list));
}

}  // namespace

Template::Template(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Template::~Template() = default;

Result<std::shared_ptr<const Template>> Template::make(std::string_view text) {
  if (text.size() > kMaxTemplateBytes) return error(Code::limit, "chat template: longer than 1 MiB");
  if (const size_t good = utf8_valid_prefix(text); good != text.size())
    return error(Code::bad_format, "chat template: not UTF-8, from byte " + std::to_string(good) + " on");
  auto program = std::make_unique<Program>();
  program->source = text;
  AERIE_TRY(Parser(program.get()).read());
  return std::shared_ptr<const Template>(new Template(std::move(program)));
}

Result<std::string> Template::render(const Conversation& conversation) const {
  Heap heap;
  Machine machine(*program_, &heap, conversation.now ? *conversation.now : platform::local_time());
  machine.set_input("tools", Value::none());  // as transformers has them: there, and none
  machine.set_input("documents", Value::none());
  if (conversation.bos_token) {
    AERIE_ASSIGN(Value bos, text_value(&heap, "bos_token", *conversation.bos_token));
    machine.set_input("bos_token", std::move(bos));
  }
  if (conversation.eos_token) {
    AERIE_ASSIGN(Value eos, text_value(&heap, "eos_token", *conversation.eos_token));
    machine.set_input("eos_token", std::move(eos));
  }
  if (conversation.variables_json) {
    AERIE_ASSIGN(const Value variables, read_json(&heap, "variables", *conversation.variables_json));
    if (!variables.is(Kind::dict)) return error(Code::invalid_argument, "variables: an object is wanted");
    for (const auto& [name, value] : variables.dict().members) machine.set_input(name.text(), value);
  }
  if (conversation.tools_json) {
    AERIE_ASSIGN(Value tools, read_json(&heap, "tools", *conversation.tools_json));
    if (!tools.is(Kind::list) && !tools.is(Kind::none)) return error(Code::invalid_argument, "tools: a list is wanted");
    machine.set_input("tools", std::move(tools));
  }
  AERIE_ASSIGN(Value messages, messages_of(&heap, conversation));
  machine.set_input("messages", std::move(messages));
  machine.set_input("add_generation_prompt", Value::boolean(conversation.add_generation_prompt));
  return machine.run();
}

}  // namespace aerie::text::chat
