// Texts equal those of jinja2 (tests/golden/chat/make_golden.py).
#include "unit/text/template_fixtures.h"

namespace aerie::text::test {
namespace {

// As jinja2 had it: a text, the template's own refusal, or any failure.
void expect_outcome(const Result<std::string>& ours, const nlohmann::ordered_json& row, const std::string& what) {
  if (row.contains("text")) {
    ASSERT_TRUE(ours.ok()) << what << "\n" << ours.status().message();
    EXPECT_EQ(*ours, row["text"].get<std::string>()) << what;
    return;
  }
  ASSERT_FALSE(ours.ok()) << what << "\n" << *ours;
  if (row.contains("raised")) {
    EXPECT_EQ(ours.status().code(), Code::invalid_argument) << what;
    EXPECT_TRUE(ours.status().message().ends_with(": " + row["raised"].get<std::string>())) << ours.status().message();
  }
}

TEST(TemplateGolden, TheLanguage) {
  const auto golden = nlohmann::ordered_json::parse(read_file(kChatGolden + "language.json"));
  const std::string variables = golden["variables"].dump();
  ASSERT_GE(golden["rows"].size(), 800u);
  for (const auto& row : golden["rows"]) {
    Conversation c;
    c.variables_json = variables;
    const std::string text = row["template"];
    expect_outcome(rendered(text, c), row, text);
  }
}

TEST(TemplateGolden, Conversations) {
  const auto golden = nlohmann::ordered_json::parse(read_file(kChatGolden + "conversations.json"));
  ASSERT_GE(golden["rows"].size(), 700u);
  for (const auto& row : golden["rows"]) {
    const auto& other = golden["others"][row["other"].get<size_t>()];
    const std::string messages = golden["conversations"][row["conversation"].get<size_t>()].dump();
    const std::string tools = other.contains("tools") ? other["tools"].dump() : "";
    const std::string variables = other.contains("variables") ? other["variables"].dump() : "{}";
    Conversation c;
    c.messages_json = messages;
    if (!tools.empty()) c.tools_json = tools;
    c.variables_json = variables;
    c.add_generation_prompt = row["add_generation_prompt"];
    c.bos_token = "<s>";
    c.eos_token = "</s>";
    const std::string name = row["template"];
    expect_outcome(rendered(read_file(kChatGolden + "templates/" + name), c), row, name + " " + messages + " " + variables);
  }
}

}  // namespace
}  // namespace aerie::text::test
