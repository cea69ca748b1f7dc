// What a text must go on with, as tokens.
#include <algorithm>
#include <string>

#include "core/platform/utf8.h"
#include "core/text/grammar/grammar.h"

namespace aerie::text::grammar {
namespace {

constexpr size_t kMaxForcedBytes = 512;

// Behind it a word, a number or white space may go on within the same token.
bool may_join(char c) {
  const auto byte = static_cast<uint8_t>(c), letter = static_cast<uint8_t>(byte | 0x20);
  return byte >= 0x80 || (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == ' ' || byte == '\n' || byte == '\t';
}

}  // namespace

const Automaton::State* Grammar::only_next(const Automaton::State* state, Automaton* automaton, uint8_t* byte) const {
  const Automaton::State* only = nullptr;
  for (size_t c = 0; c < lone_.size(); ++c) {
    const uint8_t example = program_->class_example[c];
    const Automaton::State* to = automaton->step(state, example).to;
    if (automaton->is_dead(to)) continue;
    if (only != nullptr || !lone_[c]) return nullptr;
    only = to;
    *byte = example;
  }
  return only;
}

Result<std::vector<int32_t>> Grammar::forced(Position* position, size_t most) {
  std::vector<int32_t> tokens;
  if (position->ended_) return tokens;
  const std::shared_ptr<Automaton> automaton = this->automaton();
  const Automaton::State* state = state_of(position, automaton.get());
  std::string bytes;
  bool whole = true;  // all that is forced
  while (!state->configuration->complete) {
    uint8_t byte = 0;
    const Automaton::State* next = only_next(state, automaton.get(), &byte);
    if (next == nullptr) break;
    whole = bytes.size() < kMaxForcedBytes;
    if (!whole) break;
    bytes += static_cast<char>(byte);
    state = next;
  }
  if (const size_t valid = utf8_valid_prefix(bytes); bytes.size() - valid < 4) bytes.resize(valid);  // no beginning of a character
  if (bytes.empty()) return tokens;
  AERIE_ASSIGN(tokens, tokens_->tokenizer().encode(bytes, {.add_bos = false, .parse_special = false, .goes_on = true}));
  size_t at = 0, good = 0;  // a tokenizer that normalizes may have spelled something else
  for (; good < tokens.size() && at < bytes.size(); ++good) {
    const std::string_view b = tokens_->bytes(tokens[good]);
    if (b.empty() || bytes.compare(at, b.size(), b) != 0) break;
    at += b.size();
  }
  const bool ends = whole && state->configuration->complete;
  if (good > 0 && at == bytes.size() && !ends && may_join(bytes.back())) --good;
  tokens.resize(std::min(good, most));
  return tokens;
}

}  // namespace aerie::text::grammar
