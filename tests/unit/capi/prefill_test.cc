// aerie_model_options::prefill: exact unless asked, and refused where there is no other way.
#include <cstring>

#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

TEST(PrefillOption, IsExactUnlessAskedAndSaysSo) {
  Host host;
  const aerie_runtime_options o = with_threads(1);
  ASSERT_EQ(aerie_runtime_create(&o, &host.runtime, &host.err), AERIE_OK);
  const auto open = [&](int32_t prefill, aerie_model** model) {
    aerie_model_options m;
    AERIE_INIT(m);
    m.kv_positions = 256;
    m.prefill = prefill;
    return aerie_model_open(host.runtime, demo_model(), &m, model, &host.err);
  };
  aerie_model* model = nullptr;
  for (const int32_t bad : {-1, 2}) {
    EXPECT_EQ(open(bad, &model), AERIE_E_INVALID_ARGUMENT);
    EXPECT_NE(std::strstr(host.err.message, "prefill"), nullptr) << host.err.message;
  }
  EXPECT_EQ(open(AERIE_PREFILL_FAST, &model), AERIE_E_UNSUPPORTED);
  EXPECT_NE(std::strstr(host.err.message, "device cpu has one way to multiply"), nullptr) << host.err.message;
  ASSERT_EQ(open(AERIE_PREFILL_EXACT, &model), AERIE_OK) << host.err.message;
  aerie_model_info info;
  AERIE_INIT(info);
  ASSERT_EQ(aerie_model_info_get(model, &info, &host.err), AERIE_OK);
  EXPECT_EQ(info.prefill, AERIE_PREFILL_EXACT);
  aerie_model_release(model);
}

}  // namespace
}  // namespace aerie_capi_test
