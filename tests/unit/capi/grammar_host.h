// The demo model's tokenizer, and what its grammars are asked through the C ABI.
#pragma once

#include <string>
#include <vector>

#include "aerie/text.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {

inline constexpr const char* kSchema = R"({"properties":{"name":{"type":"string"},"n":{"type":"integer"}},"required":["name"]})";

class GrammarAbi : public testing::Test {
 protected:
  void SetUp() override {
    AERIE_INIT(err);
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
    open_tokenizer();
    ASSERT_NE(tokenizer, nullptr);
    vocab = aerie_tokenizer_vocab_size(tokenizer);
    for (end = 0; end < vocab; ++end) {  // the first special token
      const char* bytes = nullptr;
      if (aerie_tokenizer_token_bytes(tokenizer, end, -1, &bytes) == 0) break;
    }
    ASSERT_LT(end, vocab);
  }
  ~GrammarAbi() override { aerie_tokenizer_release(tokenizer); }
  // A fresh one: the first grammar of a tokenizer makes what the others share.
  void open_tokenizer() {
    aerie_tokenizer_release(tokenizer);
    tokenizer = nullptr;
    const void* blob = nullptr;
    size_t size = 0;
    EXPECT_EQ(aerie_model_blob(host.model, "tokenizer", &blob, &size, &host.err), AERIE_OK);
    EXPECT_EQ(aerie_tokenizer_create(blob, size, &tokenizer, &host.err), AERIE_OK);
  }

  aerie_constraint constraint_of(aerie_grammar* grammar) {
    aerie_constraint c;
    AERIE_INIT(c);
    EXPECT_EQ(aerie_grammar_constraint(grammar, &c, &err), AERIE_OK) << err.message;
    return c;
  }
  aerie_grammar_options ends() const {
    aerie_grammar_options o;
    AERIE_INIT(o);
    o.end_tokens = &end;
    o.n_end_tokens = 1;
    return o;
  }
  std::vector<int32_t> encode(const std::string& text) {
    std::vector<int32_t> ids(text.size() + 1);
    size_t n = 0;
    EXPECT_EQ(aerie_tokenizer_encode(tokenizer, text.data(), text.size(), AERIE_ENCODE_NO_BOS, ids.data(), ids.size(),
                                     &n, &err),
              AERIE_OK);
    ids.resize(n);
    return ids;
  }
  std::vector<uint32_t> mask_of(const aerie_constraint& c, void* state) {
    std::vector<uint32_t> mask((static_cast<size_t>(vocab) + 31) / 32);
    EXPECT_EQ(c.allowed(c.user, state, mask.data(), mask.size()), AERIE_OK);
    return mask;
  }
  static bool has(const std::vector<uint32_t>& mask, int32_t t) {
    return (mask[static_cast<size_t>(t) / 32] >> (t % 32) & 1) != 0;
  }

  Host host;
  aerie_error err;
  aerie_tokenizer* tokenizer = nullptr;
  int32_t vocab = 0, end = 0;
};

}  // namespace aerie_capi_test
