// A checkpoint of the small model in a folder of its own, and its conversion.
#pragma once

#include "core/import/convert.h"
#include "unit/package/fixtures.h"

namespace aerie::test {

struct ConversionFixture {
  Folder folder;
  LlamaConfig config = small_config();
  Sources tensors = llama_sources(config);
  ConvertOptions options;
  std::vector<std::string> warnings;

  explicit ConversionFixture(const std::string& source) : source_(source) {
    options.source = folder / source;
    options.output = folder / "out.aerie";
    options.dtype = kernels::DType::f32;
    options.warnings = &warnings;
  }
  // It failed with this code, says all these words, and left no output.
  void expect_refused(const Status& s, Code code, std::initializer_list<const char*> words) const {
    EXPECT_EQ(s.code(), code) << s.message();
    for (const char* w : words) EXPECT_NE(s.message().find(w), std::string::npos) << w << " / " << s.message();
    EXPECT_EQ(folder.names(), std::vector<std::string>{source_});
  }
  std::shared_ptr<const Package> open() const {
    OpenOptions check;
    check.check_data = true;
    auto p = Package::open(options.output, check);
    EXPECT_TRUE(p.ok()) << p.status().message();
    return p.ok() ? *p : nullptr;
  }

 private:
  std::string source_;
};

}  // namespace aerie::test
