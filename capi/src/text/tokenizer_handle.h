// What an aerie_tokenizer is, for the functions that take one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "aerie/text.h"
#include "core/text/grammar/token_trie.h"
#include "core/text/tokenizer.h"

struct aerie_tokenizer {
  explicit aerie_tokenizer(std::shared_ptr<const aerie::text::Tokenizer> t) : tokenizer(std::move(t)) {}

  // Made by the first grammar, for all of them.
  std::shared_ptr<const aerie::text::grammar::TokenTrie> trie() {
    const std::lock_guard lock(mutex);
    if (made_trie == nullptr) made_trie = std::make_shared<const aerie::text::grammar::TokenTrie>(tokenizer);
    return made_trie;
  }

  std::atomic<int32_t> references{1};
  const std::shared_ptr<const aerie::text::Tokenizer> tokenizer;
  std::mutex mutex;
  std::shared_ptr<const aerie::text::grammar::TokenTrie> made_trie;
};
