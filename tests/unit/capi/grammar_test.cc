// Grammars of aerie/text.h, as a session asks them: by the functions of a constraint.
#include <string>

#include "tests/unit/capi/grammar_host.h"

namespace aerie_capi_test {
namespace {

constexpr const char* kGbnf = "root ::= \"yes\" | \"no\" (\", \" [a-z]+)?";

TEST_F(GrammarAbi, AConstraintHoldsAllThatItNeeds) {
  const aerie_grammar_options options = ends();
  aerie_grammar* grammar = nullptr;
  ASSERT_EQ(aerie_grammar_create(tokenizer, kGbnf, &options, &grammar, &err), AERIE_OK) << err.message;
  const std::vector<int32_t> no = encode("no"), more = encode(", abc");
  const aerie_constraint c = constraint_of(grammar);
  c.hold(c.user);
  aerie_grammar_release(grammar);
  aerie_tokenizer_release(tokenizer);
  tokenizer = nullptr;

  void *state = nullptr, *fork = nullptr;
  ASSERT_EQ(c.begin(c.user, &state), AERIE_OK);
  EXPECT_FALSE(has(mask_of(c, state), end));
  EXPECT_EQ(c.accept(c.user, state, end), AERIE_E_MISMATCH);
  EXPECT_EQ(c.accept(c.user, state, -1), AERIE_E_MISMATCH);
  EXPECT_EQ(c.accept(c.user, state, vocab), AERIE_E_MISMATCH);
  for (const int32_t t : no) {
    EXPECT_TRUE(has(mask_of(c, state), t));
    ASSERT_EQ(c.accept(c.user, state, t), AERIE_OK);
  }
  EXPECT_TRUE(has(mask_of(c, state), end));
  ASSERT_EQ(c.copy(c.user, state, &fork), AERIE_OK);
  for (const int32_t t : more) ASSERT_EQ(c.accept(c.user, fork, t), AERIE_OK);
  ASSERT_EQ(c.accept(c.user, state, end), AERIE_OK);  // of the one; the other goes on
  EXPECT_EQ(mask_of(c, state), std::vector<uint32_t>((static_cast<size_t>(vocab) + 31) / 32));
  EXPECT_EQ(c.accept(c.user, state, more[0]), AERIE_E_MISMATCH);
  c.destroy(c.user, state);
  EXPECT_TRUE(has(mask_of(c, fork), end));
  c.destroy(c.user, fork);
  c.release(c.user);
}

TEST_F(GrammarAbi, OfASchema) {
  aerie_grammar* grammar = nullptr;
  ASSERT_EQ(aerie_grammar_create_json(tokenizer, kSchema, nullptr, &grammar, &err), AERIE_OK) << err.message;
  const aerie_constraint c = constraint_of(grammar);
  for (const auto& [text, fits] : {std::pair{"{\"name\": \"Ada\", \"n\": 3}", true}, {"{\"n\": 3", false}}) {
    void* state = nullptr;
    ASSERT_EQ(c.begin(c.user, &state), AERIE_OK);
    int32_t code = AERIE_OK;
    for (const int32_t t : encode(text))
      if (code == AERIE_OK) code = c.accept(c.user, state, t);
    EXPECT_EQ(code, fits ? AERIE_OK : AERIE_E_MISMATCH);
    c.destroy(c.user, state);
  }
  aerie_grammar_release(grammar);
}

TEST_F(GrammarAbi, TellsWhatItForces) {
  aerie_grammar* grammar = nullptr;
  aerie_grammar_options options = ends();
  options.json_layout = AERIE_JSON_ONE_LINE;
  ASSERT_EQ(aerie_grammar_create_json(tokenizer, kSchema, &options, &grammar, &err), AERIE_OK) << err.message;
  const aerie_constraint c = constraint_of(grammar);
  void* state = nullptr;
  ASSERT_EQ(c.begin(c.user, &state), AERIE_OK);
  std::vector<int32_t> tokens(32);
  size_t n = 0;
  ASSERT_EQ(c.forced(c.user, state, tokens.data(), tokens.size(), &n), AERIE_OK);
  tokens.resize(n);
  EXPECT_EQ(tokens, encode("{\"name\": \""));
  ASSERT_EQ(c.forced(c.user, state, tokens.data(), 2, &n), AERIE_OK);
  EXPECT_EQ(n, 2u);
  for (const int32_t t : encode("{\"name\": \"x")) ASSERT_EQ(c.accept(c.user, state, t), AERIE_OK);
  ASSERT_EQ(c.forced(c.user, state, tokens.data(), tokens.size(), &n), AERIE_OK);
  EXPECT_EQ(n, 0u);
  c.destroy(c.user, state);
  aerie_grammar_release(grammar);
}

TEST_F(GrammarAbi, SaysWhatIsWrong) {
  aerie_grammar* grammar = nullptr;
  aerie_grammar_options options = ends();
  const auto says = [&](int32_t code, int32_t wanted, const std::string& words) {
    EXPECT_EQ(code, wanted) << err.message;
    EXPECT_NE(std::string(err.message).find(words), std::string::npos) << err.message;
    EXPECT_EQ(grammar, nullptr);
  };
  says(aerie_grammar_create(nullptr, kGbnf, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "tokenizer");
  says(aerie_grammar_create(tokenizer, nullptr, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "gbnf");
  says(aerie_grammar_create_json(tokenizer, nullptr, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "schema");
  says(aerie_grammar_create(tokenizer, kGbnf, &options, nullptr, &err), AERIE_E_INVALID_ARGUMENT, "out");
  says(aerie_grammar_create(tokenizer, "root ::= \"a", nullptr, &grammar, &err), AERIE_E_BAD_FORMAT, "line 1");
  says(aerie_grammar_create(tokenizer, "root ::= root", nullptr, &grammar, &err), AERIE_E_UNSUPPORTED, "left-recursive");
  says(aerie_grammar_create(tokenizer, "root ::= \"a\"{1,1000000}", nullptr, &grammar, &err), AERIE_E_LIMIT, "repetition");
  says(aerie_grammar_create_json(tokenizer, "{", nullptr, &grammar, &err), AERIE_E_BAD_FORMAT, "not JSON");
  says(aerie_grammar_create_json(tokenizer, "{\"not\":{}}", nullptr, &grammar, &err), AERIE_E_UNSUPPORTED, "#/not");
  const std::string long_text((size_t{1} << 20) + 1, ' ');
  says(aerie_grammar_create(tokenizer, long_text.c_str(), nullptr, &grammar, &err), AERIE_E_LIMIT, "gbnf");
  for (const int32_t layout : {-1, 3}) {
    options.json_layout = layout;
    says(aerie_grammar_create_json(tokenizer, kSchema, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "json_layout");
  }
  options.json_layout = AERIE_JSON_FREE;
  for (const int32_t bad : {-1, vocab}) {
    options.end_tokens = &bad;
    says(aerie_grammar_create(tokenizer, kGbnf, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, std::to_string(bad));
  }
  options.end_tokens = nullptr;
  says(aerie_grammar_create(tokenizer, kGbnf, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "end_tokens");
  options.n_end_tokens = -1;
  says(aerie_grammar_create(tokenizer, kGbnf, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "n_end_tokens");
  options = ends();
  options.struct_size = 0;
  says(aerie_grammar_create(tokenizer, kGbnf, &options, &grammar, &err), AERIE_E_INVALID_ARGUMENT, "struct_size");
  aerie_constraint c;
  AERIE_INIT(c);
  says(aerie_grammar_constraint(nullptr, &c, &err), AERIE_E_INVALID_ARGUMENT, "grammar");
  aerie_grammar_release(nullptr);
}

}  // namespace
}  // namespace aerie_capi_test
