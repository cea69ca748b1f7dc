// No template, and no conversation, takes more than what docs/chat.md says.
#include "unit/text/small_stack.h"
#include "unit/text/template_fixtures.h"

namespace aerie::text::test {
namespace {

void beyond(const std::string& text, const std::string& words) {
  const auto ours = rendered(text);
  ASSERT_FALSE(ours.ok()) << text.substr(0, 200);
  EXPECT_EQ(ours.status().code(), Code::limit) << ours.status().message();
  EXPECT_NE(ours.status().message().find(words), std::string::npos) << ours.status().message();
}

TEST(TemplateLimits, Work) {
  const std::string loops = "{% for a in range(100000) %}{% for b in range(100000) %}";
  beyond(loops + "{% set x = a %}{% endfor %}{% endfor %}", "steps");
  beyond(loops + "{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}{% endfor %}", "prints more than 64 MiB");
  beyond("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "macros call one another above 256 deep");
  beyond("{{ range(100001) }}", "a range of more than 100000");
}

TEST(TemplateLimits, Memory) {
  beyond("{{ 'x' * 1000000000 }}", "repeated too often");
  beyond("{{ [1] * 1000000000 }}", "repeated too often");
  beyond("{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "MiB");
  beyond(
      "{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(100) %}{% set ns.x = ns.x | replace('x', 'xx') "
      "%}{% endfor %}",
      "");
  beyond("{% set ns = namespace(x='xxxxxxxxxxxxxxxx') %}{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] | join %}{% endfor %}", "MiB");
  beyond("{% set ns = namespace(x=[1]) %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "MiB");
  beyond("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}", "");
  beyond("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}", "");
  beyond("{% set x = 'x' * 10000 %}{{ x | replace('', x) | replace('', x) }}", "");
  beyond("{{ ('\\n' * 1000000) | indent(1000, true, true) }}", "MiB");
}

TEST(TemplateLimits, Depth) {
  beyond(repeated(60, "{% if 1 %}"), "nested above 48 deep");
  beyond("{{ " + repeated(60, "(") + "1" + repeated(60, ")") + " }}", "nested above 48 deep");
  beyond("{{ " + repeated(60, "[") + repeated(60, "]") + " }}", "nested above 48 deep");
  beyond("{{ " + repeated(60, "-") + "1 }}", "nested above 48 deep");
  beyond("{{ " + repeated(60, "1 if 1 else ") + "1 }}", "nested above 48 deep");
  beyond("{% for " + repeated(60, "(") + "a" + repeated(60, ")") + " in b %}{% endfor %}", "nested above 48 deep");
  const std::string grow = "{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% set ns.x = ";
  for (const char* more : {"[ns.x]", "{'a': ns.x}", "(ns.x,)", "dict(a=ns.x)", "[[ns.x].index]", "[ns.x] | batch(1) | list"})
    beyond(grow + more + " %}{% endfor %}", "nested above 64 deep");
  beyond("{% set ns = namespace(x=1) %}{% for i in range(1000) %}{% for j in [ns.x] %}{% set ns.x = loop %}{% endfor %}{% endfor %}", "64 deep");
  beyond(std::string((size_t{1} << 20) + 1, ' '), "longer than 1 MiB");
}

TEST(TemplateLimits, WhatIsLongIsNotDeep) {
  EXPECT_EQ(*rendered("{{ 1" + repeated(20000, " + 1") + " }}"), "20001");
  EXPECT_EQ(*rendered("{{ " + repeated(20001, "not ") + "1 }}"), "False");
  EXPECT_EQ(*rendered("{{ 0" + repeated(20000, " or 0") + " or 5 }}"), "5");
  EXPECT_EQ(*rendered("{{ 1" + repeated(20000, " < 2 > 1") + " }}"), "True");
  EXPECT_EQ(*rendered("{% if 0 %}" + repeated(20000, "{% elif 0 %}") + "{% else %}x{% endif %}"), "x");
  EXPECT_EQ(*rendered("{{ ' x '" + repeated(20000, " | trim") + " }}"), "x");
  EXPECT_EQ(*rendered("{{ [" + repeated(20000, "1,") + "] | length }}"), "20000");
  EXPECT_EQ(rendered(repeated(40000, "{{ 1 }}"))->size(), 40000u);
}

// A leak is AddressSanitizer's to find.
TEST(TemplateLimits, RingsAreTakenApart) {
  EXPECT_EQ(*rendered("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = [b] %}{% set a.a = a %}x"), "x");
  EXPECT_EQ(*rendered("{% macro m() %}{% set n = m %}{{ caller() }}{% endmacro %}{% set k = [m] %}{% call m() %}{% set z = m %}x{% endcall %}"), "x");
  EXPECT_EQ(*rendered("{% set a = namespace() %}{% for i in range(3) %}{% macro m() %}{% endmacro %}{% set a.m = m %}{% set a.l = loop %}{% endfor %}x"), "x");
  EXPECT_FALSE(rendered("{% set a = namespace() %}{% set a.a = a %}{% for x in [a] %}{{ 1 / 0 }}{% endfor %}").ok());
  EXPECT_EQ(*rendered("{% set ns = namespace(n=none) %}{% for i in range(20000) %}{% set ns.n = namespace(n=ns.n) %}{% endfor %}x"), "x");
}

#if !defined(_WIN32) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take more
// docs/embedding.md says what is enough.
TEST(TemplateLimits, ASmallStackIsEnough) {
  struct Render {
    std::string text, json;
    Code code = Code::internal;
  };
  std::vector<Render> all = {
      {repeated(47, "{% if 1 %}") + repeated(47, "{% endif %}"), "{}"},
      {repeated(45, "{% for x in [1] %}") + repeated(45, "{% endfor %}"), "{}"},
      {repeated(47, "{% filter trim %}") + repeated(47, "{% endfilter %}"), "{}"},
      {repeated(20, "{% macro m(a=1) %}{% if 1 %}") + repeated(20, "{% endif %}{% endmacro %}"), "{}"},
      {"{{ " + repeated(22, "(1 + 0 * 3 ** ") + "1" + repeated(22, ")") + " }}", "{}"},
      {"{{ " + repeated(11, "[1 + ['a', ") + "1" + repeated(11, "] | length]") + " }}", "{}"},
      {"{{ " + repeated(11, "{1: 1 ~ dict(a=1 - 2 * 3 == ") + "1" + repeated(11, ")}") + " }}", "{}"},
      {"{% macro m(n) %}{{ m(n - 1) if n > 0 }}{% endmacro %}{{ m(250) }}", "{}"},
      {"{{ x }}{{ x | tojson(indent=2) }}{{ x == y }}{{ x < y }}{{ [x, y] | sort }}{{ x | list }}",
       "{\"x\": " + repeated(60, "[") + repeated(60, "]") + ", \"y\": " + repeated(60, "[") + "1" + repeated(60, "]") + "}"},
      {"{{ x }}{{ x | tojson(sort_keys=true) }}{{ x == y }}{{ x | dictsort }}",
       "{\"x\": " + repeated(58, "{\"a\":") + "1" + repeated(58, "}") + ", \"y\": " + repeated(58, "{\"a\":") + "2" + repeated(58, "}") + "}"},
  };
  for (Render& render : all) {
    on_small_stack([&] {
      Conversation c;
      c.variables_json = render.json;
      render.code = rendered(render.text, c).status().code();
    });
    EXPECT_EQ(render.code, Code::ok) << render.text.substr(0, 60);
  }
}
#endif

}  // namespace
}  // namespace aerie::text::test
