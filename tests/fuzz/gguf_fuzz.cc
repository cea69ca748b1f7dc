// libFuzzer: conversion of GGUF files, raw or as changes to right ones.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. -IBUILD/generated tests/fuzz/gguf_fuzz.cc
//     core/import/*.cc core/package/*.cc core/text/*.cc core/platform/*_posix.cc core/platform/utf8.cc kernels/cpu/{mxfp4,pack,q4_1}.cc
//     -lzstd -lxxhash $(pkg-config --cflags --libs libpcre2-8) -o gguf_fuzz
// Layout: kind u8; 0: a file; else changes: position u16, value u8.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "core/import/convert.h"
#include "core/package/package.h"
#include "core/text/tokenizer.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/unit/package/gguf_builder.h"

// No candidate head is made here, and all kernels need not be compiled for it.
aerie::Result<std::unique_ptr<aerie::kernels::Device>> aerie::kernels::make_cpu_device(const CpuOptions&) { std::abort(); }

namespace {

const std::string kPath = "/dev/shm/aerie-gguf-fuzz-" + std::to_string(getpid());

bool converts(const std::string& file) {
  aerie::ConvertOptions o;
  o.source = kPath + ".gguf";
  o.output = kPath + ".aerie";
  o.dtype = file.size() % 2 ? aerie::WeightDType(aerie::kernels::DType::int4) : aerie::WeightDType::stored();
  std::ofstream(o.source, std::ios::binary) << file;
  const bool ok = convert(o).ok();
  unlink(o.source.c_str());
  if (ok != (access(o.output.c_str(), F_OK) == 0)) std::abort();
  if (!ok) return false;
  const auto package = aerie::Package::open(o.output);
  unlink(o.output.c_str());
  if (!package.ok()) std::abort();
  if (const auto blob = (*package)->blob("tokenizer"); !blob.empty()) {
    const auto tokenizer = aerie::text::Tokenizer::deserialize(blob);
    if (!tokenizer.ok()) std::abort();
    (void)(*tokenizer)->encode("a text<|im_end|>\n", {.add_bos = true, .parse_special = true});
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string right[] = {aerie::test::small_gguf(false).bytes(), aerie::test::small_gguf(true).bytes()};
  static const bool they_are = converts(right[0]) && converts(right[1]);
  if (!they_are) std::abort();
  if (size < 1) return 0;
  std::string file(data + 1, data + size);
  if (data[0] == 0) {
    file.insert(0, "GGUF");
  } else {
    file = right[data[0] & 1];
    for (size_t i = 1; i + 2 < size; i += 3) file[(data[i] | data[i + 1] << 8) % file.size()] = static_cast<char>(data[i + 2]);
  }
  converts(file);
  return 0;
}
