/* aerie/text.h: tokenizers and streaming text, in a library of its own (libaerie-text).
 * Conventions as aerie.h. A tokenizer is immutable and may be shared by threads. [decoder]: one thread at a time for each
 * decoder, which is not checked. */
#ifndef AERIE_TEXT_H
#define AERIE_TEXT_H

#include "aerie/aerie.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aerie_tokenizer aerie_tokenizer;
typedef struct aerie_decoder aerie_decoder;
typedef struct aerie_grammar aerie_grammar;
typedef struct aerie_chat_template aerie_chat_template;

/* From a package's "tokenizer" blob (aerie_model_blob). The bytes are copied. AERIE_E_NOT_FOUND: size 0, the package has
 * none; AERIE_E_BAD_FORMAT; AERIE_E_UNSUPPORTED: of a newer version. [any] */
AERIE_API int32_t aerie_tokenizer_create(const void *blob, size_t size, aerie_tokenizer **out, aerie_error *err);
AERIE_API void aerie_tokenizer_release(aerie_tokenizer *tokenizer);
/* Fill a source for aerie_session_set_stop_strings. A session that has taken it holds the tokenizer, which may be released
 * then. [any] */
AERIE_API int32_t aerie_tokenizer_source(aerie_tokenizer *tokenizer, aerie_token_source *out, aerie_error *err);

enum { AERIE_ENCODE_NO_BOS = 1 << 0, AERIE_ENCODE_SPECIAL = 1 << 1 /* "<|endoftext|>" in the text is that token */ };
/* Encode UTF-8. Writes at most `capacity` ids and sets *n to the number needed; AERIE_E_LIMIT when
 * that is more than capacity (ids may be NULL with capacity 0 to ask), AERIE_E_INVALID_ARGUMENT when the vocabulary has no
 * token for a byte of it (SmolLM's lacks some that text hardly has). [any] */
AERIE_API int32_t aerie_tokenizer_encode(const aerie_tokenizer *tokenizer, const char *text, size_t size,
                                         uint32_t flags, int32_t *ids, size_t capacity, size_t *n, aerie_error *err);
/* Token ids are below it. [any] */
AERIE_API int32_t aerie_tokenizer_vocab_size(const aerie_tokenizer *tokenizer);
/* Bytes of a token, as aerie_token_bytes_fn has them, and their number, not a code; alive as long as the tokenizer. [any] */
AERIE_API int32_t aerie_tokenizer_token_bytes(const aerie_tokenizer *tokenizer, int32_t token, int32_t previous,
                                              const char **bytes);

/* Tokens to text without splitting a UTF-8 character. Retains the tokenizer. [any] */
AERIE_API int32_t aerie_decoder_create(aerie_tokenizer *tokenizer, aerie_decoder **out, aerie_error *err);
AERIE_API void aerie_decoder_release(aerie_decoder *decoder);
/* Push a token; *text (complete characters, may be empty) is borrowed until the next call. [decoder] */
AERIE_API int32_t aerie_decoder_push(aerie_decoder *decoder, int32_t token, const char **text, size_t *size,
                                     aerie_error *err);
/* What was held back, as U+FFFD; borrowed as above. The decoder is then fresh. [decoder] */
AERIE_API int32_t aerie_decoder_finish(aerie_decoder *decoder, const char **text, size_t *size, aerie_error *err);

/* ---- grammars: text of a given form, by aerie_session_set_constraint (docs/grammars.md) ---- */

enum {
  AERIE_JSON_FREE = 0,     /* as the model likes: a space or a line break with its indentation, or nothing, between tokens of JSON */
  AERIE_JSON_ONE_LINE = 1, /* a space behind : and behind , as Python's json.dumps writes it */
  AERIE_JSON_COMPACT = 2   /* no white space */
};
typedef struct aerie_grammar_options {
  uint32_t struct_size;
  int32_t n_end_tokens;
  const int32_t *end_tokens; /* allowed where the text is complete: aerie_model_info.eos_ids. Without any it ends there once
                                nothing can follow (AERIE_FINISH_CONSTRAINT) */
  int32_t json_layout;       /* AERIE_JSON_*, of aerie_grammar_create_json alone. What it leaves no choice about is not drafted by anyone,
                                but verified at once: the less choice, the faster */
  int32_t reserved;
} aerie_grammar_options;
/* From GBNF, llama.cpp's notation, whose start is the rule "root". Immutable, may be shared by sessions on many threads; retains the
 * tokenizer. options may be NULL. AERIE_E_BAD_FORMAT: no grammar, with the line; AERIE_E_UNSUPPORTED: left recursion;
 * AERIE_E_LIMIT: it grows too large. [any] */
AERIE_API int32_t aerie_grammar_create(aerie_tokenizer *tokenizer, const char *gbnf, const aerie_grammar_options *options,
                                       aerie_grammar **out, aerie_error *err);
/* JSON that a JSON Schema describes; "{}" is any JSON. AERIE_E_BAD_FORMAT: no JSON or no schema; AERIE_E_UNSUPPORTED: a keyword that
 * is not known, by its path; AERIE_E_LIMIT as above. [any] */
AERIE_API int32_t aerie_grammar_create_json(aerie_tokenizer *tokenizer, const char *schema, const aerie_grammar_options *options,
                                            aerie_grammar **out, aerie_error *err);
AERIE_API void aerie_grammar_release(aerie_grammar *grammar);
/* Fill a constraint for aerie_session_set_constraint. A session that has taken it holds the grammar, which may be released
 * then. [any] */
AERIE_API int32_t aerie_grammar_constraint(aerie_grammar *grammar, aerie_constraint *out, aerie_error *err);

/* ---- chat templates: a conversation as the text that its model was trained on (docs/chat.md) ---- */

/* From a package's "chat_template" blob (aerie_model_blob), a Jinja template as transformers runs them. The model's tokenizer and
 * info say what its bos_token and eos_token are; either may be NULL, and the template does without. Nothing is retained. Immutable,
 * may be shared by threads. AERIE_E_NOT_FOUND: size 0, the package has none; AERIE_E_BAD_FORMAT: no template, with the line;
 * AERIE_E_UNSUPPORTED: it uses what is not supported, by name and line; AERIE_E_LIMIT: longer than 1 MiB, or nested too deep. [any] */
AERIE_API int32_t aerie_chat_template_create(const char *text, size_t size, const aerie_tokenizer *tokenizer,
                                             const aerie_model_info *info, aerie_chat_template **out, aerie_error *err);
AERIE_API void aerie_chat_template_release(aerie_chat_template *chat_template);

typedef struct aerie_chat_message { /* frozen */
  const char *role;    /* "system", "user", "assistant", ... */
  const char *content;
} aerie_chat_message;
/* A conversation: messages, or messages_json. Texts are UTF-8 and end with a zero byte; all are read during the call alone. */
typedef struct aerie_chat_options {
  uint32_t struct_size;
  int32_t add_generation_prompt; /* nonzero: the text ends with what begins the model's answer, which comes next */
  const aerie_chat_message *messages;
  int32_t n_messages;
  int32_t reserved;
  const char *messages_json;  /* a list of objects, for what else messages have: tool_calls, reasoning_content, parts of a content.
                                 Members that are null are left out */
  const char *tools_json;     /* a list of the tools' descriptions; NULL: none */
  const char *variables_json; /* an object: further variables, such as {"enable_thinking": false}; NULL: none */
} aerie_chat_options;
/* Writes the text, at most `capacity` bytes without a zero byte at the end, and sets *size to the number needed; AERIE_E_LIMIT when
 * that is more than capacity (out may be NULL with capacity 0 to ask). Encode it with AERIE_ENCODE_SPECIAL | AERIE_ENCODE_NO_BOS: the
 * template writes the model's markers, a BOS among them. AERIE_E_INVALID_ARGUMENT: the template refuses the conversation, in its
 * own words (roles must alternate), or wants what is not there; AERIE_E_BAD_FORMAT: no JSON; AERIE_E_UNSUPPORTED as at create;
 * AERIE_E_LIMIT, *size untouched: it takes too many steps, too much memory, or writes more than 64 MiB. [any] */
AERIE_API int32_t aerie_chat_template_render(const aerie_chat_template *chat_template, const aerie_chat_options *options, char *out,
                                             size_t capacity, size_t *size, aerie_error *err);

#ifdef __cplusplus
}
#endif
#endif /* AERIE_TEXT_H */
