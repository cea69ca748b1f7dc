// Tokenizer: bytes <-> token ids. Optional: the core speaks ids only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/status.h"

namespace aerie::text {

struct EncodeOptions {
  bool add_bos = true;         // when the model has one
  bool parse_special = false;  // false: special tokens in the text are plain text (prompt injection)
  bool goes_on = false;        // a text that has begun: no space in front, where the tokenizer would put one
};

class Tokenizer {
 public:
  // From a package's "tokenizer" blob (written by serialize). Thread-safe once made.
  static Result<std::shared_ptr<const Tokenizer>> deserialize(std::span<const uint8_t> blob);
  // From a Hugging Face tokenizer.json: byte-level BPE (GPT-2 or Llama-3 pre-tokenizer regex), or BPE with byte fallback, which is
  // what transformers makes of a SentencePiece model.
  // Anything it does not know for certain is refused by name.
  // Special tokens beside the vocabulary that the model has no row for are left out: a model's for images, where this one is for text.
  struct Rows {
    int32_t count = INT32_MAX;
    std::string left_out;  // the first of those tokens
  };
  static Result<std::shared_ptr<const Tokenizer>> from_hf_json(std::string_view json, Rows* rows = nullptr);
  // From llama2.c's tokenizer.bin (SentencePiece BPE with scores and byte fallback).
  static Result<std::shared_ptr<const Tokenizer>> from_llama2c(std::span<const uint8_t> bytes, int32_t vocab_size);
  // From SentencePiece's tokenizer.model: BPE with byte fallback that does not normalize.
  static Result<std::shared_ptr<const Tokenizer>> from_sentencepiece(std::span<const uint8_t> bytes);

  virtual ~Tokenizer() = default;
  virtual std::vector<uint8_t> serialize() const = 0;
  virtual int32_t vocab_size() const = 0;
  virtual int32_t bos_id() const = 0;  // -1 none
  virtual Result<std::vector<int32_t>> encode(std::string_view utf8, const EncodeOptions& = {}) const = 0;
  // Bytes of one token as they appear in running text; `previous` is the token before it (-1 at the
  // start): SentencePiece drops the leading space after BOS. Special tokens give no bytes.
  virtual std::string_view token_bytes(int32_t id, int32_t previous) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // A token as the vocabulary has it, special ones too: "<s>". Empty when there is no such id.
  virtual std::string_view token_text(int32_t id) const = 0;
};

// Turns a stream of tokens into text without ever splitting a UTF-8 character: bytes that may still
// become a character are held back. Invalid bytes become U+FFFD as soon as they are certainly invalid.
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer);
  void push(int32_t token, std::string* out);  // appends complete characters
  void finish(std::string* out);               // held-back bytes become U+FFFD
  void reset(int32_t previous = -1);

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  int32_t previous_ = -1;
  std::string held_;
};

}  // namespace aerie::text
