// A grammar over the tokens of a vocabulary: which may come next in a text, and what follows on one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "core/text/grammar/automaton.h"
#include "core/text/grammar/program.h"
#include "core/text/grammar/token_trie.h"
#include "kernels/status.h"

namespace aerie::text::grammar {

// Readers of notations; the start is rule 0.
Result<Program> program_of_gbnf(std::string_view gbnf);
enum class JsonLayout {
  free,      // as models write it
  one_line,  // a space behind : and ,
  compact    // no white space
};
Result<Program> program_of_json_schema(std::string_view schema, JsonLayout layout = JsonLayout::free);

// What is shared by all texts; its functions may be called by several threads at once, each with a position of its own.
class Grammar {
 public:
  // Where a text is. Copies share what they point at, which is never changed.
  class Position {
    friend class Grammar;
    std::shared_ptr<const Configuration> configuration_;
    const Automaton::State* state_ = nullptr;  // of the automaton with this number, where that is still the grammar's
    uint64_t number_ = 0;
    bool ended_ = false;  // by an end token
  };

  // AERIE_E_LIMIT: there are too many ways to begin; invalid_argument: an end token that is none.
  static Result<std::shared_ptr<Grammar>> make(Program program, std::shared_ptr<const TokenTrie> tokens,
                                               std::vector<int32_t> end_tokens);

  Position begin();
  // Bit t % 32 of mask[t / 32] for each token t that may come; the others stay. limit: none may but an end, or it cannot be said,
  // for the limits; mismatch: the text is incomplete, and no token of the vocabulary goes on with it.
  Code allowed(Position* position, std::span<uint32_t> mask);
  // mismatch: it may not come; the position stays.
  Code accept(Position* position, int32_t token);
  // Bytes that nothing else may stand for, up to `most`, spelled as the tokenizer would; fewer where what comes behind them may be
  // part of their last token. What is likely, no promise: other tokens of the same bytes are allowed, too.
  Result<std::vector<int32_t>> forced(Position* position, size_t most);
  bool complete(const Position& position) const { return position.ended_ || position.configuration_->complete; }

 private:
  Grammar(Program program, std::shared_ptr<const TokenTrie> tokens, std::vector<int32_t> end_tokens);
  std::shared_ptr<Automaton> automaton();
  const Automaton::State* state_of(Position* position, Automaton* automaton);
  Code make_mask(const Automaton::State* state, Automaton* automaton, std::vector<uint32_t>* mask) const;
  // 1: plain bytes, as many as a plain token has at most, may come, and each leads where the others do. 0: no.
  // -1: the meter is used up.
  int takes_plain(const Automaton::State* state, Automaton* automaton, Automaton::Meter* meter) const;
  bool is_end(int32_t token) const;
  // Null: it has none, or several; *byte is the one that leads there.
  const Automaton::State* only_next(const Automaton::State* state, Automaton* automaton, uint8_t* byte) const;

  const std::shared_ptr<const Program> program_;
  const std::shared_ptr<const TokenTrie> tokens_;
  const std::vector<int32_t> end_tokens_;
  std::vector<char> lone_;  // by class of byte: it has but one
  std::mutex mutex_;  // of the automaton in use; a thread that began with one before goes on with that
  std::shared_ptr<Automaton> automaton_;
  std::shared_ptr<const Configuration> start_;
};

}  // namespace aerie::text::grammar
