#include <utility>

#include "core/text/tokenizer.h"
#include "core/platform/utf8.h"

namespace aerie::text {

StreamDecoder::StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

void StreamDecoder::push(int32_t token, std::string* out) {
  const std::string_view bytes = tokenizer_->token_bytes(token, previous_);
  // Room for all that may come out, three bytes for each that is no text: where it is short, nothing was pushed.
  out->reserve(out->size() + 3 * (held_.size() + bytes.size()));
  held_ += bytes;
  previous_ = token;
  size_t done = 0;
  while (done < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(done);
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::incomplete) break;
    if (step.kind == Utf8Kind::complete) {
      out->append(rest.substr(0, step.length));
    } else {
      utf8_append(kReplacementCharacter, out);
    }
    done += step.length;
  }
  held_.erase(0, done);
}

void StreamDecoder::finish(std::string* out) {
  // What is held is one truncated character: one replacement, as a decoder of the whole would give.
  if (!held_.empty()) utf8_append(kReplacementCharacter, out);
  held_.clear();
  previous_ = -1;
}

void StreamDecoder::reset(int32_t previous) {
  held_.clear();
  previous_ = previous;
}

}  // namespace aerie::text
