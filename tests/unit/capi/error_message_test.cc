// What an error says may quote a file or a path: it stays one line of text all the same.

#include <cstring>
#include <filesystem>
#include <fstream>

#include "aerie/tools.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

void expect_one_line(const aerie_error& err, const char* words) {
  const std::string message = err.message;
  EXPECT_NE(message.find(words), std::string::npos) << message;
  for (const char c : message) EXPECT_TRUE(static_cast<unsigned char>(c) >= 32 && c != 127) << message;
}

TEST(ErrorMessage, IsOneLineWhateverItQuotes) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK);
  EXPECT_EQ(aerie_model_open(host.runtime, "/no-such\n\x1b[2J\x7f\xC3\xA9.aerie", nullptr, &host.model, &host.err), AERIE_E_NOT_FOUND);
  expect_one_line(host.err, "/no-such??[2J?\xC3\xA9.aerie");

  const std::string header = R"({"evil\n\u001b[31mname":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const TemporaryFolder folder;
  const std::string file = folder / "evil.safetensors";
  const uint64_t size = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &size, 8);
  std::ofstream(file, std::ios::binary) << bytes << header << std::string(4, '\0');
  aerie_convert_options c;
  AERIE_INIT(c);
  c.source = file.c_str();
  const std::string output = file + ".aerie";
  c.output = output.c_str();
  EXPECT_EQ(aerie_convert(&c, &host.err), AERIE_E_UNSUPPORTED);
  expect_one_line(host.err, "evil??[31mname");
}

TEST(ErrorMessage, IsOneLineOfUtf8WhateverAPluginSays) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(host.open(&o, false), AERIE_OK) << host.err.message;
  ASSERT_EQ(aerie_runtime_load_plugin(host.runtime, bad_plugin("hostile").c_str(), &host.err), AERIE_OK) << host.err.message;
  aerie_drafter_options d;
  AERIE_INIT(d);
  d.plugin = "raw_words";
  EXPECT_EQ(aerie_drafter_open(host.model, &d, &host.drafter, &host.err), AERIE_E_MISMATCH);
  EXPECT_STREQ(host.err.message, "drafter raw_words: open: no?[2J?aerie: all is well ?");
}

}  // namespace
}  // namespace aerie_capi_test
