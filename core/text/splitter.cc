#include "core/text/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "core/text/regex_dialect.h"

namespace aerie::text {
namespace {

constexpr uint32_t kHeapLimitKiB = 256 * 1024;
// Steps of backtracking. Every match may take kFreeSteps; those that need more share what the text has to spare, so that no
// pattern takes longer than in proportion to the text. A run of n spaces costs a few times n.
constexpr size_t kFreeSteps = 4096;
constexpr size_t kSpareSteps = 10'000'000;
constexpr size_t kSpareStepsPerByte = 64;

// The matches of one text.
class Matches {
 public:
  Matches(const pcre2_code* re, std::string_view utf8)
      : re_(re), text_(utf8), spare_(kSpareSteps + kSpareStepsPerByte * utf8.size()) {
    if (made()) pcre2_set_heap_limit(context_, kHeapLimitKiB);
  }
  Matches(const Matches&) = delete;
  ~Matches() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
  }
  bool made() const { return data_ != nullptr && context_ != nullptr; }

  // The first from byte `at` on: PCRE2's result.
  int find(size_t at) {
    for (size_t limit = kFreeSteps;;) {
      pcre2_set_match_limit(context_, static_cast<uint32_t>(std::min<size_t>(limit, UINT32_MAX)));
      int rc = match(at, 0);
      if (rc == PCRE2_ERROR_JIT_STACKLIMIT) rc = match(at, PCRE2_NO_JIT);
      if (rc != PCRE2_ERROR_MATCHLIMIT || spare_ == 0) return rc;
      limit = std::min(limit * 8, spare_);
      spare_ -= limit;
    }
  }
  size_t begin() const { return pcre2_get_ovector_pointer(data_)[0]; }
  size_t end() const { return pcre2_get_ovector_pointer(data_)[1]; }

 private:
  int match(size_t at, uint32_t options) {
    return pcre2_match(re_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), at, PCRE2_NO_UTF_CHECK | options, data_, context_);
  }

  const pcre2_code* re_;
  std::string_view text_;
  size_t spare_;
  pcre2_match_data* data_ = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context_ = pcre2_match_context_create(nullptr);
};

std::string message_of(int code) {
  PCRE2_UCHAR text[160];
  if (pcre2_get_error_message(code, text, sizeof text) < 0) return "PCRE2 error " + std::to_string(code);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct RegexSplitter::Code {
  pcre2_code* re = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  ~Code() { pcre2_code_free(re); }
};

Result<RegexSplitter> RegexSplitter::make(std::string_view oniguruma) {
  AERIE_ASSIGN(const std::string translated, to_pcre2(oniguruma));
  auto code = std::make_shared<Code>();
  int failure = 0;
  PCRE2_SIZE where = 0;
  code->re = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                           PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &failure, &where, nullptr);
  if (code->re == nullptr) {
    return error(aerie::Code::bad_format,
                 "pre-tokenizer pattern \"" + std::string(oniguruma) + "\": " + message_of(failure));
  }
  // Without JIT (not built in, or no executable memory) PCRE2 interprets: slower, same matches.
  (void)pcre2_jit_compile(code->re, PCRE2_JIT_COMPLETE);
  RegexSplitter splitter;
  splitter.pattern_ = oniguruma;
  splitter.code_ = std::move(code);
  return splitter;
}

Status RegexSplitter::split(std::string_view utf8, std::vector<std::string_view>* out) const {
  Matches matches(code_->re, utf8);
  if (!matches.made()) return error(aerie::Code::out_of_memory, "no memory for a pre-tokenizer match");
  for (size_t at = 0; at < utf8.size();) {
    const int rc = matches.find(at);
    if (rc == PCRE2_ERROR_NOMATCH) {
      out->push_back(utf8.substr(at));
      break;
    }
    if (rc < 0) return error(aerie::Code::limit, "pre-tokenizer pattern: " + message_of(rc));
    const size_t begin = matches.begin(), end = matches.end();
    if (end <= begin || begin < at) {
      return error(aerie::Code::unsupported, "pre-tokenizer pattern \"" + pattern_ + "\" matches the empty string");
    }
    if (begin > at) out->push_back(utf8.substr(at, begin - at));
    out->push_back(utf8.substr(begin, end - begin));
    at = end;
  }
  return {};
}

}  // namespace aerie::text
