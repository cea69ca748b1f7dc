// libFuzzer: the body of a cost table under a checksum that fits, and the bytes as they are.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/cost_table_fuzz.cc
//     core/cost/cost_*.cc core/platform/file_posix.cc $(pkg-config --cflags --libs libxxhash) -o cost_table_fuzz
#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/cost/cost_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)aerie::decode_cost_table({data, size});
  char line[64];
  std::snprintf(line, sizeof line, "aerie-costs 1 %016llx\n", static_cast<unsigned long long>(XXH64(data, size, 0)));
  const std::string file = line + std::string(reinterpret_cast<const char*>(data), size);
  const auto table = aerie::decode_cost_table({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  if (!table.ok()) return 0;
  for (const double x : {0.0, 1.0, 77.0, 1e7}) {
    const double ms = table->target.ms(x, x, x);
    if (!(ms > 0) || table->target.ms(x + 1, x + 1, x + 1) < ms * (1 - 1e-9)) std::abort();
  }
  const std::string again = aerie::encode_cost_table(*table);
  if (!aerie::decode_cost_table({reinterpret_cast<const uint8_t*>(again.data()), again.size()}).ok()) std::abort();
  return 0;
}
