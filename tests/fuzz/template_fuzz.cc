// libFuzzer: a chat template and a conversation: whatever they are, they are read and rendered in bounded time and space.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/template_fuzz.cc
//     core/text/template/*.cc core/platform/{utf8,clock_posix}.cc -o template_fuzz
// Start from tests/golden/chat/templates and the lines of language.json. Layout: variables' length u16 little endian, variables (JSON),
// template.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/platform/utf8.h"
#include "core/text/template/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace aerie::text::chat;
  if (size < 2) return 0;
  const size_t json = data[0] | size_t{data[1]} << 8;
  if (size < 2 + json) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto made = Template::make(all.substr(json));
  if (!made.ok()) return 0;
  Conversation c;
  const Message messages[] = {{"system", "Be brief."}, {"user", " Hello \xC3\xA9 "}, {"assistant", "<think>a</think>b"}, {"user", ""}};
  c.messages = messages;
  if (json > 0) c.variables_json = all.substr(0, json);
  c.tools_json = R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}])";
  c.bos_token = "<s>";
  c.eos_token = "</s>";
  for (const bool prompt : {false, true}) {
    c.add_generation_prompt = prompt;
    const auto text = (*made)->render(c);
    if (text.ok() && aerie::utf8_valid_prefix(*text) != text->size()) std::abort();  // it has been put together of characters
  }
  return 0;
}
