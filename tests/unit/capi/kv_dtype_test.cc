// aerie_model_options::kv_dtype: what it saves, and what it refuses.
#include <cstring>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

TEST(KvDtypeOption, SaysWhatATokenTakesAndRefusesTheRest) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK);
  uint64_t bytes[3] = {}, rows = 0;
  for (int32_t t = -1; t <= 3; ++t) {
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = 256;
    m.kv_dtype = t;
    aerie_model* model = nullptr;
    const int32_t code = aerie_model_open(host.runtime, demo_model(), &m, &model, &host.err);
    if (t < 0 || t > 2) {
      EXPECT_EQ(code, AERIE_E_INVALID_ARGUMENT) << t;
      EXPECT_NE(std::strstr(host.err.message, "kv_dtype"), nullptr) << host.err.message;
      continue;
    }
    ASSERT_EQ(code, AERIE_OK) << host.err.message;
    aerie_model_info info;
    AERIE_INIT(info);
    ASSERT_EQ(aerie_model_info_get(model, &info, &host.err), AERIE_OK);
    bytes[t] = info.kv_bytes_per_token;
    rows = 2 * static_cast<uint64_t>(info.layers) * static_cast<uint64_t>(info.kv_heads);
    aerie_model_release(model);
  }
  EXPECT_EQ(bytes[1], bytes[0] / 2);
  EXPECT_EQ(bytes[2], bytes[0] / 4 + rows * 4);
}

}  // namespace
}  // namespace aerie_capi_test
