// Shared by the tests of core/text/template (one translation unit: everything here is inline).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/text/template/template.h"
#include "unit/text/text_fixtures.h"

namespace aerie::text::test {

using chat::Conversation;
using TemplatePtr = std::shared_ptr<const chat::Template>;

inline const std::string kChatGolden = std::string(AERIE_SOURCE_DIR) + "/tests/golden/chat/";

// Thursday, 5 November 2026, 14:03:09.
inline std::tm golden_time() {
  std::tm t{};
  t.tm_year = 126;
  t.tm_mon = 10;
  t.tm_mday = 5;
  t.tm_wday = 4;
  t.tm_yday = 308;
  t.tm_hour = 14;
  t.tm_min = 3;
  t.tm_sec = 9;
  return t;
}

inline Result<std::string> rendered(const std::string& text, Conversation conversation = {}) {
  auto made = chat::Template::make(text);
  if (!made.ok()) return made.status();
  conversation.now = golden_time();
  return (*made)->render(conversation);
}

inline std::string repeated(int n, std::string_view unit) {
  std::string out;
  while (n-- > 0) out += unit;
  return out;
}

}  // namespace aerie::text::test
