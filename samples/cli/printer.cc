#include "printer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace cli {

namespace {
bool wants_no_colour() {  // https://no-color.org
  const char* const set = std::getenv("NO_COLOR");
  return set && *set;
}
}  // namespace

Printer::Printer(aerie_tokenizer* tokenizer, bool quiet, std::vector<std::string> stops)
    : quiet_(quiet), colour_(isatty(1) && !wants_no_colour()), stops_(std::move(stops)) {
  for (const std::string& s : stops_) hold_ = std::max(hold_, s.size() - 1);
  if (!tokenizer) return;
  aerie_decoder* d = nullptr;
  check([&](aerie_error* e) { return aerie_decoder_create(tokenizer, &d, e); });
  decoder_.reset(d);
}

Printer::~Printer() {
  if (!in_line_) return;
  std::printf("\n");
  std::fflush(stdout);
}

void Printer::prompt(const std::vector<int32_t>& ids) {
  from_ = std::string::npos;  // a stop string is looked for in what is generated
  const size_t hold = std::exchange(hold_, 0);
  for (const int32_t t : ids) put(t, false);
  hold_ = hold;
  from_ = text_.size();
}

void Printer::put(int32_t token, bool drafted) {
  in_line_ = !quiet_;
  if (!decoder_) {
    if (!quiet_) std::printf("%d ", token);
    return flush_output();
  }
  const char* bytes = nullptr;
  size_t size = 0;
  check([&](aerie_error* e) { return aerie_decoder_push(decoder_.get(), token, &bytes, &size, e); });
  add(bytes, size, drafted);
  print(std::min(text_.size() - std::min(text_.size(), hold_), first_stop()));
}

// Where the text has to end; its size: there is none. What was printed holds no beginning of one.
size_t Printer::first_stop() const {
  size_t end = text_.size();
  for (const std::string& s : stops_) end = std::min(end, text_.find(s, std::max(from_, printed_)));
  return end;
}

void Printer::finish(int32_t ended, int32_t stop_bytes) {
  if (decoder_) {
    const char* bytes = nullptr;
    size_t size = 0;
    check([&](aerie_error* e) { return aerie_decoder_finish(decoder_.get(), &bytes, &size, e); });
    add(bytes, size, false);
    if (ended == AERIE_FINISH_STOP_STRING) {
      // stop_bytes counts raw bytes; where the text was no UTF-8 the decoder has others, so the place is looked for.
      const size_t found = first_stop(), cut = std::min(text_.size() - from_, static_cast<size_t>(stop_bytes));
      text_.resize(found < text_.size() ? found : text_.size() - cut);
    }
    print(text_.size());
  }
  if (!quiet_) std::printf("\n");
  in_line_ = false;
  flush_output();
}

void Printer::add(const char* bytes, size_t n, bool drafted) {
  text_.append(bytes, n);
  drafted_.resize(text_.size(), drafted);
}

void Printer::print(size_t end) {
  while (!quiet_ && printed_ < end) {
    const auto begin = drafted_.begin() + static_cast<std::ptrdiff_t>(printed_);
    const bool green = colour_ && *begin;
    const auto n = static_cast<size_t>(std::find(begin, drafted_.begin() + static_cast<std::ptrdiff_t>(end), !*begin) - begin);
    if (green) std::printf("\033[32m");
    std::fwrite(text_.data() + printed_, 1, n, stdout);
    if (green) std::printf("\033[0m");
    printed_ += n;
  }
  printed_ = std::max(printed_, end);
  flush_output();
}

}  // namespace cli
