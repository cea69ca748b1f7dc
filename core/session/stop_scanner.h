// StopScanner: finds stop strings in the bytes of the generated text, wherever token borders fall.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

class StopScanner {
 public:
  // Bytes of `token` in running text after `previous`; false: no such token.
  using TokenBytes = std::function<bool(int32_t token, int32_t previous, std::string_view* bytes)>;

  void set(std::vector<std::string> strings, TokenBytes bytes);
  bool active() const { return !strings_.empty(); }
  void reset() { tail_.clear(); }
  // Bytes from the start of the earliest stop string to the end of the text, when `token` completes
  // one; else -1.
  int32_t push(int32_t token, int32_t previous);

 private:
  std::vector<std::string> strings_;
  TokenBytes bytes_;
  std::string tail_;    // as much of the text's end as a stop string could begin in
  size_t longest_ = 0;
};

}  // namespace aerie
