#include "core/text/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "core/text/regex_dialect.h"

namespace aerie::text {
namespace {

constexpr uint32_t kHeapLimitKiB = 256 * 1024;
constexpr size_t kMatchLimit = 10'000'000;
constexpr size_t kMatchLimitPerByte = 16;  // a run of n spaces costs about n steps of backtracking

struct MatchState {
  pcre2_match_data* data = nullptr;
  pcre2_match_context* context = nullptr;
  ~MatchState() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
  }
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
  MatchState state;
  state.data = pcre2_match_data_create(1, nullptr);
  state.context = pcre2_match_context_create(nullptr);
  if (state.data == nullptr || state.context == nullptr) {
    return error(aerie::Code::out_of_memory, "no memory for a pre-tokenizer match");
  }
  const size_t limit = std::min<size_t>(std::max(kMatchLimit, kMatchLimitPerByte * utf8.size()), UINT32_MAX);
  pcre2_set_match_limit(state.context, static_cast<uint32_t>(limit));
  pcre2_set_heap_limit(state.context, kHeapLimitKiB);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(utf8.data());
  for (size_t at = 0; at < utf8.size();) {
    int rc = pcre2_match(code_->re, subject, utf8.size(), at, PCRE2_NO_UTF_CHECK, state.data, state.context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
      rc = pcre2_match(code_->re, subject, utf8.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, state.data,
                       state.context);
    }
    if (rc == PCRE2_ERROR_NOMATCH) {
      out->push_back(utf8.substr(at));
      break;
    }
    if (rc < 0) return error(aerie::Code::limit, "pre-tokenizer pattern: " + message_of(rc));
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(state.data);
    if (span[1] <= span[0] || span[0] < at) {
      return error(aerie::Code::unsupported, "pre-tokenizer pattern \"" + pattern_ + "\" matches the empty string");
    }
    if (span[0] > at) out->push_back(utf8.substr(at, span[0] - at));
    out->push_back(utf8.substr(span[0], span[1] - span[0]));
    at = span[1];
  }
  return {};
}

}  // namespace aerie::text
