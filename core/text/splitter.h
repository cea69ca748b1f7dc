// Cuts text into the pieces that BPE works on.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace aerie::text {

// Thread-safe once made.
class RegexSplitter {
 public:
  static Result<RegexSplitter> make(std::string_view oniguruma);
  const std::string& pattern() const { return pattern_; }  // as given
  // Appends the matches and the text between them, in order. `utf8` must be valid.
  Status split(std::string_view utf8, std::vector<std::string_view>* out) const;

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace aerie::text
