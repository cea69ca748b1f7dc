// Chat templates of aerie/text.h when the heap runs out.
#include <functional>

#include "tests/unit/capi/grammar_host.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

class OutOfMemoryChat : public GrammarAbi {};

// Whatever allocation fails, it is said, and the same call goes through once there is memory again.
TEST_F(OutOfMemoryChat, OneErrorAndNothingIsLost) {
  const std::string text =
      "{% macro m(tool, deep=1) %}{{ tool.name | upper }}({{ tool.parameters | tojson(indent=2) }}){% endmacro %}"
      "{% set ns = namespace(text='', last=none) %}{% set ns.last = ns %}"
      "{% for message in messages if message.role != 'nobody' %}{% set ns.text = ns.text ~ loop.index ~ message.content.strip().split(' ') %}"
      "{% set part %}{{ message | dictsort }}{% endset %}{{ part[::-1] }}{{ message.items() | list | length }}{% else %}{{ 'none' }}{% endfor %}"
      "{% for tool in tools | selectattr('type', 'equalto', 'function') | map(attribute='function') | sort(attribute='name') %}{{ m(tool) }}"
      "{% endfor %}{{ ns.text }}{{ '%s and %s' % (bos_token, {'a': [1, 2.5, none]}) }}{% filter trim %} a {% endfilter %}";
  aerie_chat_options options;
  AERIE_INIT(options);
  options.messages_json = R"([{"role":"user","content":" a text that is not short, and some more "},{"role":"assistant","content":"b"}])";
  options.tools_json = R"([{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"a":[1]}}}}])";
  options.variables_json = R"({"bos_token":"a text that takes the heap for itself"})";
  const auto run = [&](int64_t at, int64_t length, int* failures) {
    aerie_chat_template* made = nullptr;
    std::string out(4096, '\0');
    size_t size = 0;
    const std::function<int32_t()> calls[] = {
        [&] { return aerie_chat_template_create(text.data(), text.size(), tokenizer, nullptr, &made, &err); },
        [&] { return aerie_chat_template_render(made, &options, out.data(), out.size(), &size, &err); },
    };
    Shortage::begin(at, length);
    for (const auto& call : calls) Shortage::insist(call, err, failures);
    const bool reached = Shortage::end();
    aerie_chat_template_release(made);
    return reached;
  };
  EXPECT_GT(Shortage::each(run), 25);
}

}  // namespace
}  // namespace aerie_capi_test
