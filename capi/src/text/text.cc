// libaerie-text: the C door of core/text.
#include "aerie/text.h"

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/src/guard.h"
#include "capi/src/text/tokenizer_handle.h"
#include "core/text/tokenizer.h"

using aerie::Code;
using aerie::error;
using aerie::Status;
using aerie::capi::guard;
using aerie::capi::require;

struct aerie_decoder {
  explicit aerie_decoder(std::shared_ptr<const aerie::text::Tokenizer> t)
      : vocab_size(t->vocab_size()), stream(std::move(t)) {}
  int32_t vocab_size;
  aerie::text::StreamDecoder stream;
  std::string text;  // what the last call lent out
};

int32_t aerie_tokenizer_create(const void* blob, size_t size, aerie_tokenizer** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(out, "out"));
    if (size == 0) return error(Code::not_found, "the package has no tokenizer");
    AERIE_TRY(require(blob, "blob"));
    AERIE_ASSIGN(auto tokenizer, aerie::text::Tokenizer::deserialize({static_cast<const uint8_t*>(blob), size}));
    *out = new aerie_tokenizer(std::move(tokenizer));
    return {};
  });
}

void aerie_tokenizer_release(aerie_tokenizer* tokenizer) {
  if (tokenizer && tokenizer->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete tokenizer;
}

int32_t aerie_tokenizer_encode(const aerie_tokenizer* tokenizer, const char* text, size_t size, uint32_t flags,
                               int32_t* ids, size_t capacity, size_t* n, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(tokenizer, "tokenizer"));
    AERIE_TRY(require(n, "n"));
    if (size > 0) AERIE_TRY(require(text, "text"));
    if (capacity > 0) AERIE_TRY(require(ids, "ids"));
    if ((flags & ~uint32_t{AERIE_ENCODE_NO_BOS | AERIE_ENCODE_SPECIAL}) != 0) {
      return error(Code::unsupported, "unknown flag in flags");
    }
    aerie::text::EncodeOptions options;
    options.add_bos = (flags & AERIE_ENCODE_NO_BOS) == 0;
    options.parse_special = (flags & AERIE_ENCODE_SPECIAL) != 0;
    const std::string_view utf8 = size > 0 ? std::string_view(text, size) : std::string_view();
    AERIE_ASSIGN(const std::vector<int32_t> encoded, tokenizer->tokenizer->encode(utf8, options));
    *n = encoded.size();
    if (encoded.size() > capacity) {
      return error(Code::limit, "the text needs " + std::to_string(encoded.size()) + " tokens, there is room for " +
                                    std::to_string(capacity));
    }
    std::copy(encoded.begin(), encoded.end(), ids);
    return {};
  });
}

int32_t aerie_tokenizer_vocab_size(const aerie_tokenizer* tokenizer) {
  return tokenizer != nullptr ? tokenizer->tokenizer->vocab_size() : 0;
}

int32_t aerie_tokenizer_token_bytes(const aerie_tokenizer* tokenizer, int32_t token, int32_t previous, const char** bytes) {
  if (tokenizer == nullptr || bytes == nullptr) return -1;
  int32_t n = -1;
  const int32_t code = guard(nullptr, [&]() -> Status {
    const auto& impl = *tokenizer->tokenizer;
    if (token < 0 || token >= impl.vocab_size()) return error(Code::not_found, "no such token");
    const std::string_view view = impl.token_bytes(token, previous);
    *bytes = view.empty() ? "" : view.data();
    n = static_cast<int32_t>(view.size());
    return {};
  });
  return code == AERIE_OK ? n : -1;
}

int32_t aerie_tokenizer_source(aerie_tokenizer* tokenizer, aerie_token_source* out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(tokenizer, "tokenizer"));
    AERIE_TRY(aerie::capi::check_result(out, "aerie_token_source"));
    aerie_token_source source{};
    source.user = tokenizer;
    source.bytes = [](void* user, int32_t token, int32_t previous, const char** bytes) {
      return aerie_tokenizer_token_bytes(static_cast<const aerie_tokenizer*>(user), token, previous, bytes);
    };
    source.hold = [](void* user) {
      static_cast<aerie_tokenizer*>(user)->references.fetch_add(1, std::memory_order_relaxed);
    };
    source.release = [](void* user) { aerie_tokenizer_release(static_cast<aerie_tokenizer*>(user)); };
    aerie::capi::write_result(source, out);
    return {};
  });
}

int32_t aerie_decoder_create(aerie_tokenizer* tokenizer, aerie_decoder** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(tokenizer, "tokenizer"));
    AERIE_TRY(require(out, "out"));
    *out = new aerie_decoder(tokenizer->tokenizer);
    return {};
  });
}

void aerie_decoder_release(aerie_decoder* decoder) { delete decoder; }

int32_t aerie_decoder_push(aerie_decoder* decoder, int32_t token, const char** text, size_t* size, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(decoder, "decoder"));
    AERIE_TRY(require(text, "text"));
    AERIE_TRY(require(size, "size"));
    if (token < 0 || token >= decoder->vocab_size) {
      return error(Code::invalid_argument, "token " + std::to_string(token) + " is outside the vocabulary of " +
                                               std::to_string(decoder->vocab_size));
    }
    decoder->text.clear();
    decoder->stream.push(token, &decoder->text);
    *text = decoder->text.c_str();
    *size = decoder->text.size();
    return {};
  });
}

int32_t aerie_decoder_finish(aerie_decoder* decoder, const char** text, size_t* size, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(decoder, "decoder"));
    AERIE_TRY(require(text, "text"));
    AERIE_TRY(require(size, "size"));
    decoder->text.clear();
    decoder->stream.finish(&decoder->text);
    decoder->stream.reset();
    *text = decoder->text.c_str();
    *size = decoder->text.size();
    return {};
  });
}
