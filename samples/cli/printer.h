// Printer: text as it comes, drafted tokens green on a terminal, up to a stop string.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common.h"

namespace cli {

class Printer {
 public:
  // `tokenizer` null: tokens are printed as numbers. `quiet`: nothing is printed, text() is all.
  Printer(aerie_tokenizer* tokenizer, bool quiet, std::vector<std::string> stops);
  ~Printer();  // what a failure has cut short is a line of its own
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  void prompt(const std::vector<int32_t>& ids);
  void put(int32_t token, bool drafted);
  // The rest, to the first stop string if one has ended the text; stop_bytes as the last step gave it.
  void finish(int32_t ended, int32_t stop_bytes);
  // Generated, without the prompt.
  std::string text() const { return text_.substr(from_); }

 private:
  void add(const char* bytes, size_t n, bool drafted);
  size_t first_stop() const;
  void print(size_t end);

  Decoder decoder_;
  bool quiet_, colour_, in_line_ = false;
  std::vector<std::string> stops_;
  size_t hold_ = 0;  // bytes that may yet turn out to begin a stop string
  std::string text_;
  std::vector<bool> drafted_;  // of each byte of it
  size_t from_ = 0, printed_ = 0;
};

}  // namespace cli
