// A model's chat template: the Jinja program that makes one text of a conversation, run as transformers runs it.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/status.h"

namespace aerie::text::chat {

inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

struct Program;

struct Message {
  std::string_view role, content;
};

struct Conversation {
  std::span<const Message> messages;               // or, as JSON:
  std::optional<std::string_view> messages_json;
  std::optional<std::string_view> tools_json;
  std::optional<std::string_view> variables_json;  // an object: more variables
  bool add_generation_prompt = false;
  std::optional<std::string_view> bos_token, eos_token;
  std::optional<std::tm> now;                      // the clock's unless given
};

// Immutable: any number of threads may render.
class Template {
 public:
  static Result<std::shared_ptr<const Template>> make(std::string_view text);
  Result<std::string> render(const Conversation& conversation) const;
  ~Template();

 private:
  explicit Template(std::unique_ptr<const Program> program);
  const std::unique_ptr<const Program> program_;
};

}  // namespace aerie::text::chat
