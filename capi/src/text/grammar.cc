// Grammars: the C door of core/text/grammar, and what a session asks of one.
#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "capi/src/guard.h"
#include "capi/src/text/tokenizer_handle.h"
#include "core/text/grammar/grammar.h"

using aerie::text::grammar::Grammar;
using aerie::text::grammar::JsonLayout;
using aerie::text::grammar::Program;

struct aerie_grammar {
  explicit aerie_grammar(std::shared_ptr<Grammar> g) : grammar(std::move(g)) {}
  std::atomic<int32_t> references{1};
  const std::shared_ptr<Grammar> grammar;
};

namespace {

using aerie::Code;
using aerie::error;
using aerie::Result;
using aerie::Status;
using aerie::capi::guard;
using aerie::capi::require;

// Far above what people write.
constexpr size_t kMaxGrammarBytes = size_t{1} << 20;

int32_t create_grammar(aerie_tokenizer* tokenizer, const char* text, const char* text_name, const aerie_grammar_options* options,
                       Result<Program> (*read)(std::string_view, JsonLayout), aerie_grammar** out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(tokenizer, "tokenizer"));
    AERIE_TRY(require(text, text_name));
    AERIE_TRY(require(out, "out"));
    aerie_grammar_options o;
    AERIE_TRY(aerie::capi::read_struct(options, &o, "aerie_grammar_options"));
    if (o.n_end_tokens < 0) return error(Code::invalid_argument, "n_end_tokens is negative");
    if (o.n_end_tokens > 0) AERIE_TRY(require(o.end_tokens, "end_tokens"));
    const std::string_view view(text);
    if (view.size() > kMaxGrammarBytes) return error(Code::limit, std::string(text_name) + ": longer than 1 MiB");
    if (o.json_layout < AERIE_JSON_FREE || o.json_layout > AERIE_JSON_COMPACT)
      return error(Code::invalid_argument, "json_layout: " + std::to_string(o.json_layout) + " is none of AERIE_JSON_*");
    AERIE_ASSIGN(Program program, read(view, static_cast<JsonLayout>(o.json_layout)));
    std::vector<int32_t> end_tokens(o.end_tokens, o.end_tokens + o.n_end_tokens);
    AERIE_ASSIGN(auto grammar, Grammar::make(std::move(program), tokenizer->trie(), std::move(end_tokens)));
    *out = new aerie_grammar(std::move(grammar));
    return {};
  });
}

Grammar& grammar_of(void* user) { return *static_cast<aerie_grammar*>(user)->grammar; }

// The functions of a constraint answer by a code alone.
template <class F>
int32_t answer(F&& f) noexcept {
  try {
    return static_cast<int32_t>(f());
  } catch (const std::bad_alloc&) {
    return AERIE_E_OUT_OF_MEMORY;
  } catch (...) {
    return AERIE_E_INTERNAL;
  }
}

int32_t begin_state(void* user, void** state) {
  return answer([&] {
    *state = new Grammar::Position(grammar_of(user).begin());
    return Code::ok;
  });
}

int32_t copy_state(void* /*user*/, const void* state, void** copy) {
  return answer([&] {
    *copy = new Grammar::Position(*static_cast<const Grammar::Position*>(state));
    return Code::ok;
  });
}

int32_t allowed_tokens(void* user, void* state, uint32_t* mask, size_t n_words) {
  return answer([&] { return grammar_of(user).allowed(static_cast<Grammar::Position*>(state), {mask, n_words}); });
}

int32_t accept_token(void* user, void* state, int32_t token) {
  return answer([&] { return grammar_of(user).accept(static_cast<Grammar::Position*>(state), token); });
}

int32_t forced_tokens(void* user, void* state, int32_t* tokens, size_t capacity, size_t* n) {
  return answer([&] {
    const auto forced = grammar_of(user).forced(static_cast<Grammar::Position*>(state), capacity);
    if (!forced.ok()) return forced.status().code();
    std::copy(forced->begin(), forced->end(), tokens);
    *n = forced->size();
    return Code::ok;
  });
}

void destroy_state(void* /*user*/, void* state) { delete static_cast<Grammar::Position*>(state); }

}  // namespace

int32_t aerie_grammar_create(aerie_tokenizer* tokenizer, const char* gbnf, const aerie_grammar_options* options,
                             aerie_grammar** out, aerie_error* err) {
  return create_grammar(tokenizer, gbnf, "gbnf", options, [](std::string_view text, JsonLayout) { return aerie::text::grammar::program_of_gbnf(text); }, out, err);
}

int32_t aerie_grammar_create_json(aerie_tokenizer* tokenizer, const char* schema, const aerie_grammar_options* options,
                                  aerie_grammar** out, aerie_error* err) {
  return create_grammar(tokenizer, schema, "schema", options, aerie::text::grammar::program_of_json_schema, out, err);
}

void aerie_grammar_release(aerie_grammar* grammar) {
  if (grammar && grammar->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete grammar;
}

int32_t aerie_grammar_constraint(aerie_grammar* grammar, aerie_constraint* out, aerie_error* err) {
  return guard(err, [&]() -> Status {
    AERIE_TRY(require(grammar, "grammar"));
    AERIE_TRY(aerie::capi::check_result(out, "aerie_constraint"));
    aerie_constraint constraint{};
    constraint.user = grammar;
    constraint.begin = begin_state;
    constraint.copy = copy_state;
    constraint.allowed = allowed_tokens;
    constraint.accept = accept_token;
    constraint.destroy = destroy_state;
    constraint.forced = forced_tokens;
    constraint.hold = [](void* user) { static_cast<aerie_grammar*>(user)->references.fetch_add(1, std::memory_order_relaxed); };
    constraint.release = [](void* user) { aerie_grammar_release(static_cast<aerie_grammar*>(user)); };
    aerie::capi::write_result(constraint, out);
    return {};
  });
}
