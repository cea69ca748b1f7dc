// aerie_model_options: what each choice gives, and what is refused by name.
#include <cstring>
#include <utility>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

class ModelOptions : public testing::Test {
 protected:
  void SetUp() override {
    const aerie_runtime_options o = with_threads(1);
    ASSERT_EQ(aerie_runtime_create(&o, &host_.runtime, &host_.err), AERIE_OK);
    AERIE_INIT(options_);
    options_.kv_positions = 256;
  }
  // Opens with options_; `info` of the model where that went well.
  int32_t open(aerie_model_info* info) {
    aerie_model* model = nullptr;
    const int32_t code = aerie_model_open(host_.runtime, demo_model(), &options_, &model, &host_.err);
    if (code != AERIE_OK) return code;
    AERIE_INIT(*info);
    EXPECT_EQ(aerie_model_info_get(model, info, &host_.err), AERIE_OK) << host_.err.message;
    aerie_model_release(model);
    return code;
  }
  bool said(const char* words) const { return std::strstr(host_.err.message, words) != nullptr; }

  Host host_;
  aerie_model_options options_;
  aerie_model_info info_;
};

TEST_F(ModelOptions, PrefillIsExactUnlessAskedAndSaysSo) {
  for (const int32_t bad : {-1, 2}) {
    options_.prefill = bad;
    EXPECT_EQ(open(&info_), AERIE_E_INVALID_ARGUMENT);
    EXPECT_TRUE(said("prefill")) << host_.err.message;
  }
  options_.prefill = AERIE_PREFILL_FAST;
  EXPECT_EQ(open(&info_), AERIE_E_UNSUPPORTED);
  EXPECT_TRUE(said("device cpu has one way to multiply")) << host_.err.message;
  options_.prefill = AERIE_PREFILL_EXACT;
  ASSERT_EQ(open(&info_), AERIE_OK) << host_.err.message;
  EXPECT_EQ(info_.prefill, AERIE_PREFILL_EXACT);
}

TEST_F(ModelOptions, KvDtypeSaysWhatATokenTakesAndRefusesTheRest) {
  uint64_t bytes[3] = {}, rows = 0;
  for (const int32_t bad : {-1, 3}) {
    options_.kv_dtype = bad;
    EXPECT_EQ(open(&info_), AERIE_E_INVALID_ARGUMENT) << bad;
    EXPECT_TRUE(said("kv_dtype")) << host_.err.message;
  }
  for (int32_t t = 0; t < 3; ++t) {
    options_.kv_dtype = t;
    ASSERT_EQ(open(&info_), AERIE_OK) << host_.err.message;
    bytes[t] = info_.kv_bytes_per_token;
    rows = 2 * static_cast<uint64_t>(info_.layers) * static_cast<uint64_t>(info_.kv_heads);
  }
  EXPECT_EQ(bytes[1], bytes[0] / 2);
  EXPECT_EQ(bytes[2], bytes[0] / 4 + rows * 4);
}

TEST_F(ModelOptions, AreJudgedBeforeTheFileIsRead) {
  int reads = 0;
  options_.progress_user = &reads;
  options_.progress = [](void* user, uint64_t, uint64_t) -> int32_t { return ++*static_cast<int*>(user); };
  for (int32_t aerie_model_options::*field : {&aerie_model_options::kv_positions, &aerie_model_options::kv_dtype,
                                              &aerie_model_options::keep_prefixes, &aerie_model_options::prefill}) {
    const int32_t good = std::exchange(options_.*field, -2);
    EXPECT_EQ(open(&info_), AERIE_E_INVALID_ARGUMENT);
    EXPECT_TRUE(said(": -2")) << host_.err.message;
    options_.*field = good;
  }
  EXPECT_EQ(reads, 0);
  EXPECT_EQ(open(&info_), AERIE_OK) << host_.err.message;
  EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace aerie_capi_test
