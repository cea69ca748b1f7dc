// Save and restore as a host does it: sizes, buffers, files, handles, errors.

#include <filesystem>
#include <fstream>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

class CapiSave : public testing::Test {
 protected:
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(host_.open(&o, true), AERIE_OK) << host_.err.message;
    ASSERT_EQ(host_.text(10, &before_), AERIE_OK) << host_.err.message;
  }

  // The restored handle takes the place of the fixture's session; the whole text is plain decode's.
  void expect_goes_on(aerie_session* restored) {
    aerie_session_release(host_.session);
    host_.session = restored;
    std::vector<int32_t> text = before_;
    ASSERT_EQ(host_.more(24, &text), AERIE_OK) << host_.err.message;
    EXPECT_EQ(text, plain_text());
  }
  size_t size() {
    size_t n = 0;
    EXPECT_EQ(aerie_session_save(host_.session, nullptr, 0, &n, &host_.err), AERIE_OK) << host_.err.message;
    return n;
  }

  Host host_;
  std::vector<int32_t> before_;
  const TemporaryFolder folder_;
};

TEST_F(CapiSave, ToABuffer) {
  std::vector<uint8_t> buffer(size());
  size_t n = 0;
  ASSERT_EQ(aerie_session_save(host_.session, buffer.data(), buffer.size(), &n, &host_.err), AERIE_OK) << host_.err.message;
  EXPECT_EQ(n, buffer.size());
  // The drafter has one sequence: the saved session makes room first.
  aerie_session_release(host_.session);
  host_.session = nullptr;
  const Settings s(host_.drafter);
  aerie_session* restored = nullptr;
  ASSERT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), n, &restored, &host_.err), AERIE_OK) << host_.err.message;
  const int32_t* tokens = nullptr;
  ASSERT_EQ(aerie_session_tokens(restored, &tokens, &n, &host_.err), AERIE_OK);
  EXPECT_EQ(n, kPrompt.size() + before_.size());
  expect_goes_on(restored);
}

TEST_F(CapiSave, ToAFile) {
  const std::string path = folder_ / "text.session";
  std::ofstream(path) << "what was there before";
  ASSERT_EQ(aerie_session_save_file(host_.session, path.c_str(), &host_.err), AERIE_OK) << host_.err.message;
  EXPECT_EQ(std::filesystem::file_size(path), size());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "no temporary file stays";
  const Settings s(nullptr);
  aerie_session* restored = nullptr;
  ASSERT_EQ(aerie_session_restore_file(host_.model, &s.options, path.c_str(), &restored, &host_.err), AERIE_OK) << host_.err.message;
  expect_goes_on(restored);
}

TEST_F(CapiSave, WhatTheHostGetsWrong) {
  const size_t need = size();
  size_t n = 0;
  std::vector<uint8_t> buffer(need);
  EXPECT_EQ(aerie_session_save(host_.session, buffer.data(), need - 1, &n, &host_.err), AERIE_E_LIMIT);
  EXPECT_EQ(n, need);
  EXPECT_EQ(aerie_session_save(host_.session, nullptr, need, &n, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_save(host_.session, buffer.data(), need, nullptr, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_save(nullptr, buffer.data(), need, &n, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_save_file(host_.session, nullptr, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_NE(aerie_session_save_file(host_.session, (folder_ / "no/such/folder").c_str(), &host_.err), AERIE_OK);
  ASSERT_EQ(aerie_session_save(host_.session, buffer.data(), need, &n, &host_.err), AERIE_OK);

  auto* const untouched = reinterpret_cast<aerie_session*>(0x10);
  aerie_session* out = untouched;
  const Settings s(nullptr);
  EXPECT_EQ(aerie_session_restore(nullptr, &s.options, buffer.data(), need, &out, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_restore(host_.model, &s.options, nullptr, need, &out, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), need, nullptr, &host_.err), AERIE_E_INVALID_ARGUMENT);
  EXPECT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), 0, &out, &host_.err), AERIE_E_BAD_FORMAT);
  EXPECT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), need / 2, &out, &host_.err), AERIE_E_BAD_FORMAT);
  EXPECT_EQ(aerie_session_restore_file(host_.model, &s.options, (folder_ / "absent").c_str(), &out, &host_.err), AERIE_E_NOT_FOUND);
  const std::string empty = folder_ / "empty";
  std::ofstream(empty).flush();
  EXPECT_EQ(aerie_session_restore_file(host_.model, &s.options, empty.c_str(), &out, &host_.err), AERIE_E_BAD_FORMAT);
  EXPECT_NE(std::string(host_.err.message).find(empty), std::string::npos) << host_.err.message;
  buffer[need / 2] ^= 4;
  EXPECT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), need, &out, &host_.err), AERIE_E_BAD_FORMAT);
  EXPECT_STREQ(host_.err.message, "saved session: checksum: the bytes are damaged");
  EXPECT_EQ(out, untouched);
  // The session takes no harm from any of it.
  ASSERT_EQ(host_.more(24, &before_), AERIE_OK);
  EXPECT_EQ(before_, plain_text());
}

// The drafter's one sequence is taken: an error, and no half-made session holds anything.
TEST_F(CapiSave, NoSequenceLeft) {
  std::vector<uint8_t> buffer(size());
  size_t n = 0;
  ASSERT_EQ(aerie_session_save(host_.session, buffer.data(), buffer.size(), &n, &host_.err), AERIE_OK);
  const Settings s(host_.drafter);
  aerie_session* out = nullptr;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(aerie_session_restore(host_.model, &s.options, buffer.data(), n, &out, &host_.err), AERIE_E_LIMIT);
  EXPECT_EQ(out, nullptr);
}

}  // namespace
}  // namespace aerie_capi_test
