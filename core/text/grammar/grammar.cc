#include "core/text/grammar/grammar.h"

#include <algorithm>
#include <string>
#include <utility>

namespace aerie::text::grammar {

Result<std::shared_ptr<Grammar>> Grammar::make(Program program, std::shared_ptr<const TokenTrie> tokens,
                                               std::vector<int32_t> end_tokens) {
  for (const int32_t t : end_tokens) {
    if (t < 0 || t >= tokens->vocab_size()) {
      return error(Code::invalid_argument, "end_tokens: token " + std::to_string(t) + " is outside the vocabulary of " +
                                               std::to_string(tokens->vocab_size()));
    }
  }
  std::shared_ptr<Grammar> grammar(new Grammar(std::move(program), std::move(tokens), std::move(end_tokens)));
  const Automaton::State* start = grammar->automaton_->start();
  if (start == nullptr) return error(Code::limit, "grammar: there are too many ways to begin a text");
  grammar->start_ = start->configuration;
  return grammar;
}

Grammar::Grammar(Program program, std::shared_ptr<const TokenTrie> tokens, std::vector<int32_t> end_tokens)
    : program_(std::make_shared<const Program>(std::move(program))),
      tokens_(std::move(tokens)),
      end_tokens_(std::move(end_tokens)),
      automaton_(std::make_shared<Automaton>(program_, 1)) {
  std::vector<int> bytes(program_->class_example.size());
  for (const uint8_t c : program_->class_of) ++bytes[c];
  for (const int n : bytes) lone_.push_back(n == 1);
}

bool Grammar::is_end(int32_t token) const {
  return std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
}

std::shared_ptr<Automaton> Grammar::automaton() {
  const std::lock_guard lock(mutex_);
  if (automaton_->is_full()) automaton_ = std::make_shared<Automaton>(program_, automaton_->number() + 1);
  return automaton_;
}

const Automaton::State* Grammar::state_of(Position* position, Automaton* automaton) {
  if (position->number_ != automaton->number()) {
    position->state_ = automaton->find(position->configuration_);
    position->number_ = automaton->number();
  }
  return position->state_;
}

Grammar::Position Grammar::begin() {
  Position position;
  position.configuration_ = start_;
  return position;
}

int Grammar::takes_plain(const Automaton::State* state, Automaton* automaton, Automaton::Meter* meter) const {
  for (size_t i = 0; i < kMaxPlainToken; ++i) {
    const Automaton::State* next = nullptr;
    for (const uint8_t byte : program_->plain_examples) {
      const Automaton::Step& step = automaton->step(state, byte);
      if (!meter->charge(step)) return -1;
      const Automaton::State* to = step.to;
      if (automaton->is_dead(to) || (next != nullptr && to != next)) return 0;
      next = to;
    }
    if (next == state) return 1;  // and so on
    state = next;
  }
  return 1;
}

Code Grammar::make_mask(const Automaton::State* state, Automaton* automaton, std::vector<uint32_t>* mask) const {
  std::vector<const Automaton::State*> path(tokens_->max_depth() + 1);
  path[0] = state;
  Automaton::Meter meter(state);
  bool limited = false;
  const int plain = takes_plain(state, automaton, &meter);
  if (plain < 0) return Code::limit;
  if (plain > 0) *mask = tokens_->plain();
  const TokenTrie::Tree& trie = plain > 0 ? tokens_->others() : tokens_->all();
  for (size_t i = 0; i < trie.size();) {
    const TokenTrie::Node& node = trie.nodes[i];
    const Automaton::Step& step = automaton->step(path[node.depth - 1], node.byte);
    if (!meter.charge(step)) return Code::limit;
    const Automaton::State* to = step.to;
    if (automaton->is_dead(to)) {
      limited |= automaton->is_limited(to);
      i = node.end;
      continue;
    }
    path[node.depth] = to;
    ++i;
    for (uint32_t k = node.tokens; k < trie.nodes[i].tokens; ++k) {
      const auto t = static_cast<uint32_t>(trie.tokens[k]);
      (*mask)[t / 32] |= uint32_t{1} << (t % 32);
    }
  }
  const auto bit = [](int32_t t) { return uint32_t{1} << (t % 32); };
  for (const int32_t t : end_tokens_) (*mask)[static_cast<uint32_t>(t) / 32] &= ~bit(t);
  const bool goes_on = std::any_of(mask->begin(), mask->end(), [](uint32_t word) { return word != 0; });
  const bool complete = state->configuration->complete;
  if (!goes_on && limited) return Code::limit;  // a text that ends because of it would be cut in silence
  if (!goes_on && !complete) return Code::mismatch;
  if (complete)
    for (const int32_t t : end_tokens_) (*mask)[static_cast<uint32_t>(t) / 32] |= bit(t);
  return Code::ok;
}

Code Grammar::allowed(Position* position, std::span<uint32_t> mask) {
  if (position->ended_) return Code::ok;
  const std::shared_ptr<Automaton> automaton = this->automaton();
  const Automaton::State* state = state_of(position, automaton.get());
  Automaton::Mask made = automaton->mask_of(state);
  if (made == nullptr) {
    auto bits = std::make_shared<std::vector<uint32_t>>((static_cast<size_t>(tokens_->vocab_size()) + 31) / 32);
    if (const Code code = make_mask(state, automaton.get(), bits.get()); code != Code::ok) return code;
    made = std::move(bits);
    automaton->keep_mask(state, made);
  }
  for (size_t i = 0; i < std::min(mask.size(), made->size()); ++i) mask[i] |= (*made)[i];
  return Code::ok;
}

Code Grammar::accept(Position* position, int32_t token) {
  if (position->ended_) return Code::mismatch;
  if (is_end(token)) {
    if (!position->configuration_->complete) return Code::mismatch;
    position->ended_ = true;
    return Code::ok;
  }
  const std::string_view bytes = tokens_->bytes(token);
  if (bytes.empty()) return Code::mismatch;
  const std::shared_ptr<Automaton> automaton = this->automaton();
  const Automaton::State* state = state_of(position, automaton.get());
  for (const char c : bytes) {
    state = automaton->step(state, static_cast<uint8_t>(c)).to;
    if (automaton->is_dead(state)) return Code::mismatch;
  }
  position->configuration_ = state->configuration;
  position->state_ = state;
  position->number_ = automaton->number();
  return Code::ok;
}

}  // namespace aerie::text::grammar
