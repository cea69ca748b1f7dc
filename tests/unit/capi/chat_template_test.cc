// Chat templates of aerie/text.h.
#include <string>

#include "tests/unit/capi/grammar_host.h"

namespace aerie_capi_test {
namespace {

constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if tools %}{{ tools | tojson }}{% endif %}{{ style }}{% if add_generation_prompt %}<assistant>{% endif %}";

class ChatAbi : public GrammarAbi {
 protected:
  void SetUp() override {
    GrammarAbi::SetUp();
    AERIE_INIT(info);
    ASSERT_EQ(aerie_model_info_get(host.model, &info, &err), AERIE_OK);
    AERIE_INIT(options);
  }
  ~ChatAbi() override { aerie_chat_template_release(made); }
  int32_t create(const std::string& text, bool with_tokens = true) {
    aerie_chat_template_release(made);
    made = nullptr;
    return aerie_chat_template_create(text.data(), text.size(), with_tokens ? tokenizer : nullptr,
                                      with_tokens ? &info : nullptr, &made, &err);
  }
  std::string render() {
    size_t size = 0;
    const int32_t code = aerie_chat_template_render(made, &options, nullptr, 0, &size, &err);
    EXPECT_EQ(code, size > 0 ? AERIE_E_LIMIT : AERIE_OK) << err.message;
    std::string text(size, '\0');
    EXPECT_EQ(aerie_chat_template_render(made, &options, text.data(), text.size(), &size, &err), AERIE_OK) << err.message;
    EXPECT_EQ(size, text.size());
    return text;
  }

  aerie_model_info info;
  aerie_chat_options options;
  aerie_chat_template* made = nullptr;
};

TEST_F(ChatAbi, MessagesAsStructsAndAsJson) {
  ASSERT_EQ(create(kTemplate, false), AERIE_OK) << err.message;
  const aerie_chat_message messages[] = {{"system", "s"}, {"user", "\u00e9 <b>"}};
  options.messages = messages;
  options.n_messages = 2;
  EXPECT_EQ(render(), "<system>s<user>\u00e9 <b>");
  options.add_generation_prompt = 1;
  options.tools_json = "[{\"b\": 1, \"a\": 2.0}]";
  options.variables_json = "{\"style\": \"brief\", \"eos_token\": \"|\"}";
  const std::string expected = "<system>s|<user>\u00e9 <b>|[{\"b\": 1, \"a\": 2.0}]brief<assistant>";
  EXPECT_EQ(render(), expected);
  options.messages = nullptr;
  options.n_messages = 0;
  options.messages_json = "[{\"role\": \"system\", \"content\": \"s\"}, {\"role\": \"user\", \"content\": \"\\u00e9 <b>\"}]";
  EXPECT_EQ(render(), expected);
  options = {};
  AERIE_INIT(options);
  EXPECT_EQ(render(), "");
}

TEST_F(ChatAbi, TokensOfTheModel) {
  ASSERT_GT(info.n_eos, 0);
  ASSERT_EQ(create("{{ bos_token is defined }}{{ eos_token }}"), AERIE_OK) << err.message;
  const std::string text = render();
  EXPECT_TRUE(text.starts_with(info.bos_id >= 0 ? "True" : "False")) << text;
  // The template's marker is the token.
  std::vector<int32_t> ids(8);
  size_t n = 0;
  const std::string eos = text.substr(info.bos_id >= 0 ? 4 : 5);
  ASSERT_EQ(aerie_tokenizer_encode(tokenizer, eos.data(), eos.size(), AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS, ids.data(), ids.size(), &n,
                                   &err),
            AERIE_OK);
  EXPECT_EQ(n, 1u);
  EXPECT_EQ(ids[0], info.eos_ids[0]);
}

TEST_F(ChatAbi, RoomForTheText) {
  ASSERT_EQ(create("12345"), AERIE_OK);
  char text[8] = "-------";
  size_t size = 0;
  EXPECT_EQ(aerie_chat_template_render(made, &options, text, 4, &size, &err), AERIE_E_LIMIT);
  EXPECT_NE(std::string(err.message).find("5 bytes, there is room for 4"), std::string::npos) << err.message;
  EXPECT_EQ(size, 5u);
  EXPECT_STREQ(text, "-------");
  EXPECT_EQ(aerie_chat_template_render(made, &options, text, sizeof text, &size, &err), AERIE_OK);
  EXPECT_STREQ(text, "12345--");
}

TEST_F(ChatAbi, SaysWhatIsWrong) {
  const auto says = [&](int32_t code, int32_t wanted, const std::string& words) {
    EXPECT_EQ(code, wanted) << err.message;
    EXPECT_NE(std::string(err.message).find(words), std::string::npos) << err.message;
  };
  const auto refused = [&](const std::string& text, int32_t wanted, const std::string& words) {
    says(create(text), wanted, words);
    EXPECT_EQ(made, nullptr);
  };
  refused("", AERIE_E_NOT_FOUND, "no chat template");
  refused("a\n{{ x", AERIE_E_BAD_FORMAT, "chat template, line 2");
  refused("{{ x | nope }}", AERIE_E_UNSUPPORTED, "filter 'nope'");
  refused(std::string((size_t{1} << 20) + 1, ' '), AERIE_E_LIMIT, "1 MiB");
  says(aerie_chat_template_create(nullptr, 1, nullptr, nullptr, &made, &err), AERIE_E_INVALID_ARGUMENT, "text");
  says(aerie_chat_template_create("a", 1, nullptr, nullptr, nullptr, &err), AERIE_E_INVALID_ARGUMENT, "out");
  aerie_model_info bad = info;
  bad.struct_size = 0;
  says(aerie_chat_template_create("a", 1, tokenizer, &bad, &made, &err), AERIE_E_INVALID_ARGUMENT, "aerie_model_info");

  ASSERT_EQ(create("{% for m in messages %}{{ raise_exception('roles must alternate') }}{% endfor %}"), AERIE_OK);
  size_t size = 77;
  const auto render_says = [&](int32_t wanted, const std::string& words) {
    says(aerie_chat_template_render(made, &options, nullptr, 0, &size, &err), wanted, words);
    EXPECT_EQ(size, 77u);
  };
  const aerie_chat_message messages[] = {{"user", "a"}, {"user", nullptr}};
  options.messages = messages;
  options.n_messages = 1;
  render_says(AERIE_E_INVALID_ARGUMENT, "roles must alternate");
  options.n_messages = 2;
  render_says(AERIE_E_INVALID_ARGUMENT, "the content of a message");
  options.n_messages = -1;
  render_says(AERIE_E_INVALID_ARGUMENT, "n_messages");
  options.n_messages = 1;
  options.messages_json = "[]";
  render_says(AERIE_E_INVALID_ARGUMENT, "both");
  options.messages = nullptr;
  render_says(AERIE_E_INVALID_ARGUMENT, "messages");
  options.n_messages = 0;
  options.messages_json = "[{";
  render_says(AERIE_E_BAD_FORMAT, "messages: is not JSON");
  options.messages_json = nullptr;
  options.tools_json = "{}";
  render_says(AERIE_E_INVALID_ARGUMENT, "tools");
  options.tools_json = nullptr;
  options.struct_size = 1;
  render_says(AERIE_E_INVALID_ARGUMENT, "struct_size");
  AERIE_INIT(options);
  says(aerie_chat_template_render(nullptr, &options, nullptr, 0, &size, &err), AERIE_E_INVALID_ARGUMENT, "chat_template");
  says(aerie_chat_template_render(made, nullptr, nullptr, 0, &size, &err), AERIE_E_INVALID_ARGUMENT, "options");
  says(aerie_chat_template_render(made, &options, nullptr, 1, &size, &err), AERIE_E_INVALID_ARGUMENT, "out");
  says(aerie_chat_template_render(made, &options, nullptr, 0, nullptr, &err), AERIE_E_INVALID_ARGUMENT, "size");
  aerie_chat_template_release(nullptr);
}

}  // namespace
}  // namespace aerie_capi_test
