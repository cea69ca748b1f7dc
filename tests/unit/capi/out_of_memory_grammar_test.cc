// Grammars of aerie/text.h when the heap runs out.
#include <functional>

#include "tests/unit/capi/grammar_host.h"
#include "tests/unit/capi/shortage.h"

namespace aerie_capi_test {
namespace {

class OutOfMemoryGrammar : public GrammarAbi {};

// Whatever allocation fails, it is said, and the same call goes through once there is memory again.
TEST_F(OutOfMemoryGrammar, OneErrorAndNothingIsLost) {
  const std::vector<int32_t> tokens = encode("{\"name\": \"Ada\", \"n\": 3}");
  const auto run = [&](bool schema, int64_t at, int64_t length, int* failures) {
    open_tokenizer();
    aerie_grammar* grammar = nullptr;
    void *state = nullptr, *copy = nullptr;
    const char* gbnf =
        "root ::= obj\nobj ::= \"{\" (\"\\\"\" [a-zA-Z]+ \"\\\": \" (\"\\\"\" [^\"]* \"\\\"\" | [0-9]{1,3} | obj) \", "
        "\"?){1,4} \"}\"";
    std::vector<uint32_t> mask((static_cast<size_t>(vocab) + 31) / 32);
    std::vector<std::function<int32_t()>> calls;
    aerie_constraint c;
    AERIE_INIT(c);
    calls.push_back([&] {
      return schema ? aerie_grammar_create_json(tokenizer, kSchema, nullptr, &grammar, &err)
                    : aerie_grammar_create(tokenizer, gbnf, nullptr, &grammar, &err);
    });
    calls.push_back([&] { return aerie_grammar_constraint(grammar, &c, &err); });
    calls.push_back([&] { return c.begin(c.user, &state); });
    for (const int32_t t : tokens) {
      calls.push_back([&] { return c.allowed(c.user, state, mask.data(), mask.size()); });
      calls.push_back([&] { return c.copy(c.user, state, &copy); });
      calls.push_back([&, t] { return c.accept(c.user, state, t); });
      calls.push_back([&] { return c.destroy(c.user, copy), AERIE_OK; });
    }
    Shortage::begin(at, length);
    for (const auto& call : calls) Shortage::insist(call, err, failures);
    const bool reached = Shortage::end();
    c.destroy(c.user, state);
    aerie_grammar_release(grammar);
    return reached;
  };
  for (const bool schema : {false, true}) {
    const auto of = [&](int64_t at, int64_t length, int* failures) { return run(schema, at, length, failures); };
    EXPECT_GT(Shortage::each(of), 25);  // with AddressSanitizer, a quarter of what there is without
  }
}

}  // namespace
}  // namespace aerie_capi_test
