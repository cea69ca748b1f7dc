// What a conversation is made of, and what is said when it cannot be rendered.
#include <thread>

#include "unit/text/template_fixtures.h"

namespace aerie::text::test {
namespace {

void refused_template(const std::string& text, Code code, const std::string& words, const Conversation& c = {}) {
  const auto ours = rendered(text, c);
  ASSERT_FALSE(ours.ok()) << text << "\n" << *ours;
  EXPECT_EQ(ours.status().code(), code) << ours.status().message();
  EXPECT_NE(ours.status().message().find(words), std::string::npos) << text << "\n" << ours.status().message();
}

TEST(ChatTemplate, MessagesAsTheyAreOrAsJson) {
  const std::string text =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m['content'] }}\n{% endfor %}{{ '[assistant]' if add_generation_prompt }}";
  const chat::Message messages[] = {{"system", "S \"q\""}, {"user", "\u00e9 {{ x }}"}};
  Conversation c;
  c.messages = messages;
  c.bos_token = "<s>";
  EXPECT_EQ(*rendered(text, c), "<s>[system] S \"q\"\n[user] \u00e9 {{ x }}\n");
  c.messages_json = R"([{"role":"system","content":"S \"q\""},{"role":"user","content":"\u00e9 {{ x }}"}])";
  c.add_generation_prompt = true;
  EXPECT_EQ(*rendered(text, c), "<s>[system] S \"q\"\n[user] \u00e9 {{ x }}\n[assistant]");
}

TEST(ChatTemplate, VariablesOfTransformers) {
  const std::string text = "{{ tools is none }}{{ documents is none }}{{ bos_token is defined }}{{ eos_token }}{{ x }}{{ messages }}";
  Conversation c;
  EXPECT_EQ(*rendered(text, c), "TrueTrueFalse[]");
  c.tools_json = "[1]";
  c.eos_token = "</s>";
  c.variables_json = R"({"x": 2.0, "bos_token": "b", "documents": [], "messages": 5})";  // messages are those of the conversation
  EXPECT_EQ(*rendered(text, c), "FalseFalseTrue</s>2.0[]");
}

TEST(ChatTemplate, NullsOfAMessageAreLeftOut) {
  Conversation c;
  c.messages_json = R"([{"role":"assistant","content":null,"tool_calls":[{"x":null}]}])";
  EXPECT_EQ(*rendered("{{ messages[0].content is defined }}{{ messages }}", c), "False[{'role': 'assistant', 'tool_calls': [{'x': None}]}]");
}

TEST(ChatTemplate, TheOrderOfKeysAndNumbersAreKept) {
  Conversation c;
  c.variables_json = R"({"d": {"z": 1, "a": 1.0, "m": -0.0, "z": 1e2, "big": 9223372036854775807, "s": "\ud83d\ude00\u0000"}})";
  EXPECT_EQ(*rendered("{{ d | tojson }}", c),
            "{\"z\": 100.0, \"a\": 1.0, \"m\": -0.0, \"big\": 9223372036854775807, \"s\": \"\U0001F600\\u0000\"}");
}

TEST(ChatTemplate, TheDateIsTheClocks) {
  auto made = chat::Template::make("{{ strftime_now('%Y') }}");
  ASSERT_TRUE(made.ok());
  const auto year = (*made)->render({});
  ASSERT_TRUE(year.ok());
  EXPECT_GE(std::stoi(*year), 2026);
}

TEST(ChatTemplate, OneForManyThreads) {
  const auto made = chat::Template::make("{% for m in messages %}{{ m.role ~ ': ' ~ m.content | upper }}\n{% endfor %}{{ 'constant' ~ 1 }}");
  ASSERT_TRUE(made.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const std::string content = "text " + std::to_string(t);
      const chat::Message message[] = {{"user", content}};
      Conversation c;
      c.messages = message;
      for (int i = 0; i < 300; ++i) {
        const auto text = (*made)->render(c);
        ASSERT_TRUE(text.ok());
        EXPECT_EQ(*text, "user: TEXT " + std::to_string(t) + "\nconstant1");
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(ChatTemplateRefusals, OfATemplateNameTheLine) {
  const Code bad = Code::bad_format, unsupported = Code::unsupported;
  refused_template("a\n{{ x | nope }}", unsupported, "chat template, line 2: filter 'nope' is not supported");
  refused_template("{% if x %}\n{{ x | nope }}{% endif %}{% if not x %}\n\n{{ x | nope }}{% endif %}", unsupported, "line 4: filter 'nope'");
  refused_template("\n\n{{ x is nope }}", unsupported, "line 3: test 'nope' is not supported");
  refused_template("{{ x.upper().center(5) }}", unsupported, "'center' of a 'str' is not supported", [] {
    Conversation c;
    c.variables_json = R"({"x":"a"})";
    return c;
  }());
  refused_template("{% block x %}", unsupported, "line 1: {% block %} is not supported");
  refused_template("{% fnord %}", bad, "unexpected {% fnord %}");
  refused_template("a\n{% if x %}\nb", bad, "line 2: expected {% endif %} for what begins here, found the end");
  refused_template("{% for x in y %}{% endif %}", bad, "unexpected {% endif %}");
  refused_template("{{ 'a }}", bad, "line 1: this text is not closed");
  refused_template("{{ a b }}", bad, "expected \"}}\", found \"b\"");
  refused_template("{{ (a }}", bad, "line 1: unexpected \"}\"");
  refused_template("{{ a", bad, "expected \"}}\", found the end");
  refused_template("{# a", bad, "this comment is not closed");
  refused_template("{{ a ? b }}", bad, "unexpected \"?\"");
  refused_template("{{ \u00e9 }}", bad, "unexpected \"\u00e9\"");
  refused_template("{{ '\\ud800' }}", unsupported, "U+D800");
  refused_template("{{ 9223372036854775808 }}", unsupported, "a number as large as 9223372036854775808");
  refused_template("{{ 0x10 }}", unsupported, "other bases");
  refused_template("\xff", bad, "not UTF-8, from byte 0 on");
  refused_template("{% for x in y recursive %}{% endfor %}", unsupported, "\"recursive\"");
  refused_template("{% break %}", bad, "{% break %} outside of a loop");
  refused_template("{{ f(**x) }}", unsupported, "\"**\"");
}

TEST(ChatTemplateRefusals, OfAConversationSayWhatTheTemplateSays) {
  const Code wrong = Code::invalid_argument;
  Conversation c;
  c.variables_json = R"({"n": 1, "d": {}, "nul": null})";
  refused_template("\n{{ raise_exception('roles must alternate') }}", wrong, "chat template, line 2: roles must alternate", c);
  refused_template("{{ nope.x }}", wrong, "'nope' is undefined", c);
  refused_template("{{ d.nope.x }}", wrong, "'nope' is undefined", c);
  refused_template("{{ n + 'a' }}", wrong, "'+' is not for 'int' and 'str'", c);
  refused_template("{{ nul + 'a' }}", wrong, "'+' is not for 'NoneType' and 'str'", c);
  refused_template("{% for x in n %}{% endfor %}", wrong, "'int' is no list", c);
  refused_template("{{ n() }}", wrong, "a 'int' cannot be called", c);
  refused_template("{% set d.x = 1 %}", wrong, "only a namespace", c);
  refused_template("{{ d.pop('x') }}", wrong, "'pop' is undefined", c);  // as the sandbox has it
  refused_template("{{ n / 0 }}", wrong, "division by zero", c);
  refused_template("{{ 9223372036854775807 + n }}", Code::unsupported, "beyond 64 bits", c);
  refused_template("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", wrong, "macro 'm' takes not more than 1 arguments", c);
}

TEST(ChatTemplateRefusals, OfJson) {
  const auto with = [](const char* messages, const char* tools, const char* variables) {
    Conversation c;
    if (messages != nullptr) c.messages_json = messages;
    if (tools != nullptr) c.tools_json = tools;
    if (variables != nullptr) c.variables_json = variables;
    return c;
  };
  const Code bad = Code::bad_format, wrong = Code::invalid_argument;
  refused_template("", bad, "messages: is not JSON, from byte 2 on", with("[}", nullptr, nullptr));
  refused_template("", bad, "tools: is not JSON", with(nullptr, "", nullptr));
  refused_template("", bad, "variables: is not JSON", with(nullptr, nullptr, "{\"a\": \"\xff\"}"));
  refused_template("", wrong, "messages: a list of objects", with("{}", nullptr, nullptr));
  refused_template("", wrong, "messages: a list of objects", with("[1]", nullptr, nullptr));
  refused_template("", wrong, "tools: a list", with(nullptr, "{}", nullptr));
  refused_template("", wrong, "variables: an object", with(nullptr, nullptr, "[]"));
  refused_template("", Code::unsupported, "whole numbers beyond 64 bits", with(nullptr, nullptr, R"({"a": 9223372036854775808})"));
  refused_template("", Code::unsupported, "1.7e308", with(nullptr, nullptr, R"({"a": 1e999})"));
  refused_template("", Code::limit, "nested above 63 deep", with((repeated(64, "[") + repeated(64, "]")).c_str(), nullptr, nullptr));
  const chat::Message message[] = {{"user", "\xff"}};
  Conversation c;
  c.messages = message;
  refused_template("", wrong, "content: not UTF-8", c);
}

}  // namespace
}  // namespace aerie::text::test
