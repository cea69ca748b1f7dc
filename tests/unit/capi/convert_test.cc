// aerie_convert's dtypes, as aerie_inspect shows them.
#include <nlohmann/json.hpp>

#include "aerie/tools.h"
#include "tests/unit/capi/capi_fixtures.h"

namespace aerie_capi_test {
namespace {

struct Converting {
  const TemporaryFolder folder;
  std::string source = AERIE_SOURCE_DIR "/tests/golden/logits/mha", output = folder / "out.aerie";
  int32_t dtype = AERIE_WEIGHTS_DEFAULT, head_dtype = AERIE_WEIGHTS_DEFAULT;
  aerie_error err;

  int32_t run() {
    AERIE_INIT(err);
    aerie_convert_options c;
    AERIE_INIT(c);
    c.source = source.c_str();
    c.output = output.c_str();
    c.dtype = dtype;
    c.head_dtype = head_dtype;
    return aerie_convert(&c, &err);
  }
  std::string dtype_of(const char* tensor) {
    char* text = nullptr;
    EXPECT_EQ(aerie_inspect(output.c_str(), AERIE_INSPECT_JSON, &text, &err), AERIE_OK) << err.message;
    if (!text) return {};
    const auto said = nlohmann::json::parse(text);
    aerie_string_free(text);
    for (const auto& t : said["tensors"])
      if (t["name"] == tensor) return t["dtype"];
    return {};
  }
};

TEST(Convert, WeightsBecomeWhatIsAskedFor) {
  Converting c;
  for (const auto& [dtype, name] : {std::pair{AERIE_WEIGHTS_DEFAULT, "bf16"}, {AERIE_WEIGHTS_F32, "f32"}, {AERIE_WEIGHTS_BF16, "bf16"},
                                    {AERIE_WEIGHTS_INT8, "int8"}, {AERIE_WEIGHTS_INT4, "int4"}, {AERIE_WEIGHTS_FP8, "fp8"},
                                    {AERIE_WEIGHTS_Q4_1, "q4_1"}, {AERIE_WEIGHTS_MXFP4, "mxfp4"}, {AERIE_WEIGHTS_STORED, "f32"}}) {
    c.dtype = dtype;
    ASSERT_EQ(c.run(), AERIE_OK) << c.err.message;
    EXPECT_EQ(c.dtype_of("embed"), name);
    EXPECT_EQ(c.dtype_of("layers.0.mlp.down"), name);
  }
  c.dtype = AERIE_WEIGHTS_Q4_1;
  c.head_dtype = AERIE_WEIGHTS_STORED;
  ASSERT_EQ(c.run(), AERIE_OK) << c.err.message;
  EXPECT_EQ(c.dtype_of("embed"), "f32");
  EXPECT_EQ(c.dtype_of("layers.0.mlp.down"), "q4_1");
}

TEST(Convert, AnUnknownDTypeIsRefusedByItsField) {
  for (const int32_t unknown : {-1, AERIE_WEIGHTS_MXFP4 + 1}) {
    Converting c;
    c.dtype = unknown;
    EXPECT_EQ(c.run(), AERIE_E_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(c.err.message), "dtype: " + std::to_string(unknown) + " is none of AERIE_WEIGHTS_*");
    c.dtype = AERIE_WEIGHTS_DEFAULT;
    c.head_dtype = unknown;
    EXPECT_EQ(c.run(), AERIE_E_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(c.err.message), "head_dtype: " + std::to_string(unknown) + " is none of AERIE_WEIGHTS_*");
  }
}

}  // namespace
}  // namespace aerie_capi_test
