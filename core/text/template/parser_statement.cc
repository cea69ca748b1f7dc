// Statements but for, macro and call.
#include <algorithm>

#include "core/text/template/parser.h"

namespace aerie::text::chat {

Status Parser::read() {
  program_->source = normalized_source(program_->source);
  AERIE_ASSIGN(tokens_, tokens_of(program_->source));
  std::string_view end;
  AERIE_TRY(body({}, &end));
  emit(Op::end);
  return {};
}

bool Parser::take_op(std::string_view op) {
  if (!peek().is(op)) return false;
  ++at_;
  return true;
}
bool Parser::take_name(std::string_view name) {
  if (!peek().is_name(name)) return false;
  ++at_;
  return true;
}
Status Parser::expect_op(std::string_view op) { return take_op(op) ? Status() : expected("\"" + std::string(op) + "\""); }
Status Parser::expect_tag_end() {
  if (peek().kind != TokenKind::tag_end) return expected("\"%}\"");
  ++at_;
  return {};
}

Status Parser::expected(const std::string& what) const {
  std::string found;
  switch (peek().kind) {
    case TokenKind::print_end: found = "\"}}\""; break;
    case TokenKind::tag_end: found = "\"%}\""; break;
    case TokenKind::string: found = "a text"; break;
    case TokenKind::end:
    case TokenKind::data:
    case TokenKind::print_begin:
    case TokenKind::tag_begin: found = "the end"; break;
    default: found = "\"" + std::string(peek().text.substr(0, 40)) + "\"";
  }
  return fail("expected " + what + ", found " + found);
}

Status Parser::deep() const {
  return depth_ <= kMaxDepth ? Status() : fail("nested above " + std::to_string(kMaxDepth) + " deep", Code::limit);
}

size_t Parser::emit(Op op, int32_t a, uint32_t b, uint16_t n, uint8_t id) {
  program_->code.push_back({op, id, n, a, b, peek().line});
  return program_->code.size() - 1;
}

uint32_t Parser::name_id(std::string_view name) {
  const auto [at, is_new] = program_->name_ids.try_emplace(name, static_cast<uint32_t>(program_->names.size()));
  if (is_new) program_->names.push_back(name);
  return at->second;
}

void Parser::emit_constant(Value v) {
  program_->constants.push_back(std::move(v));
  emit(Op::constant, static_cast<int32_t>(program_->constants.size() - 1));
}
void Parser::emit_string(std::string_view text) { emit_constant(Value::string(text)); }

Status Parser::body(std::initializer_list<std::string_view> ends, std::string_view* end) {
  const Deeper deeper(&depth_);
  AERIE_TRY(deep());
  const uint32_t begin = at_ > 0 ? tokens_[at_ - 1].line : 1;  // of the tag
  while (true) {
    switch (peek().kind) {
      case TokenKind::end:
        if (ends.size() == 0) return {};
        return template_error(
            Code::bad_format, begin,
            "expected {% " + std::string(*(ends.end() - 1)) + " %} for what begins here, found the end");
      case TokenKind::data:
        program_->texts.push_back(peek().text);
        emit(Op::text, static_cast<int32_t>(program_->texts.size() - 1));
        ++at_;
        break;
      case TokenKind::print_begin: AERIE_TRY(print()); break;
      default: {
        ++at_;  // {%
        if (peek().kind != TokenKind::name) return expected("the name of a statement");
        const std::string_view name = peek().text;
        const auto* found = std::find(ends.begin(), ends.end(), name);
        if (found != ends.end()) {
          *end = *found;
          ++at_;
          return {};
        }
        AERIE_TRY(statement(name));
      }
    }
  }
}

Status Parser::print() {
  ++at_;
  AERIE_TRY(tuple(true, false));
  if (peek().kind != TokenKind::print_end) return expected("\"}}\"");
  emit(Op::print);
  ++at_;
  return {};
}

Status Parser::statement(std::string_view name) {
  const uint32_t line = peek().line;
  ++at_;
  if (name == "if") return if_statement();
  if (name == "for") return for_statement();
  if (name == "set") return set_statement();
  if (name == "macro") return macro_statement();
  if (name == "call") return call_statement();
  if (name == "filter") return filter_statement();
  if (name == "with") return with_statement();
  if (name == "generation") return generation();
  if (name == "break" || name == "continue") return leave_loop(name == "continue");
  for (const std::string_view known : {"block", "extends", "include", "import", "from", "autoescape", "do", "trans", "debug"})
    if (name == known) return template_error(Code::unsupported, line, "{% " + std::string(name) + " %} is not supported");
  return template_error(Code::bad_format, line, "unexpected {% " + std::string(name) + " %}");
}

Status Parser::if_statement() {
  std::vector<size_t> ends;
  std::string_view end = "elif";
  const Deeper conditional(&conditional_);
  while (end == "elif") {
    AERIE_TRY(tuple(false, false));
    const size_t otherwise = emit(Op::jump_if_false);
    AERIE_TRY(expect_tag_end());
    AERIE_TRY(body({"elif", "else", "endif"}, &end));
    if (end != "endif") ends.push_back(emit(Op::jump));
    land(otherwise);
  }
  if (end == "else") {
    AERIE_TRY(expect_tag_end());
    AERIE_TRY(body({"endif"}, &end));
  }
  for (const size_t jump : ends) land(jump);
  return expect_tag_end();
}

Status Parser::set_statement() {
  const size_t targets = at_;
  bool more = false;  // skipped now, and read again behind the value that they take
  while (peek().kind == TokenKind::name || peek().is(",") || peek().is("(") || peek().is(")") || peek().is(".")) {
    more = more || peek().is(",") || peek().is(".");
    ++at_;
  }
  if (at_ == targets) return expected("the name of a variable");
  if (take_op("=")) {
    AERIE_TRY(tuple(true, false));
    const size_t behind = at_;
    at_ = targets;
    AERIE_TRY(target());
    if (!peek().is("=")) return expected("\"=\"");
    at_ = behind;
    return expect_tag_end();
  }
  // {% set x %}...{% endset %}, with filters or without.
  if (more) return fail("only a single name can be set to what is between {% set %} and {% endset %}", Code::unsupported);
  at_ = targets + 1;
  size_t behind = 0;
  AERIE_TRY(captured("endset", &behind));
  AERIE_TRY(filters_and_tests());
  if (peek().kind != TokenKind::tag_end) return expected("\"%}\"");
  at_ = targets;
  AERIE_TRY(target());
  at_ = behind;
  return expect_tag_end();
}

// What is between this tag and the one that ends it, as a text. Filters of the tag are read afterwards: at_ is where they are.
Status Parser::captured(std::string_view end_tag, size_t* behind) {
  const size_t filters = at_;
  std::string_view end;
  while (peek().kind != TokenKind::tag_end && peek().kind != TokenKind::end) ++at_;
  AERIE_TRY(expect_tag_end());
  emit(Op::capture_begin);
  emit(Op::scope_begin);
  around_.push_back({Around::capture, {}, 0, 0});
  AERIE_TRY(body({end_tag}, &end));
  around_.pop_back();
  emit(Op::scope_end);
  emit(Op::capture_end);
  *behind = at_;
  at_ = filters;
  return {};
}

Status Parser::filter_statement() {
  size_t behind = 0;
  AERIE_TRY(captured("endfilter", &behind));
  AERIE_TRY(filter());
  AERIE_TRY(filters_and_tests());
  if (peek().kind != TokenKind::tag_end) return expected("\"%}\"");
  emit(Op::print);
  at_ = behind;
  return expect_tag_end();
}

Status Parser::with_statement() {
  std::vector<uint32_t> names;
  while (peek().kind != TokenKind::tag_end) {
    if (!names.empty()) AERIE_TRY(expect_op(","));
    if (peek().kind != TokenKind::name) return expected("the name of a variable");
    names.push_back(name_id(peek().text));
    ++at_;
    AERIE_TRY(expect_op("="));
    AERIE_TRY(expression());
  }
  AERIE_TRY(expect_tag_end());
  emit(Op::scope_begin);
  for (size_t i = names.size(); i > 0; --i) emit(Op::store, static_cast<int32_t>(names[i - 1]));
  around_.push_back({Around::scope, {}, 0, 0});
  std::string_view end;
  AERIE_TRY(body({"endwith"}, &end));
  around_.pop_back();
  emit(Op::scope_end);
  return expect_tag_end();
}

// What training asks of transformers: which part the model has written. Here it is text.
Status Parser::generation() {
  AERIE_TRY(expect_tag_end());
  emit(Op::scope_begin);
  around_.push_back({Around::macro, {}, 0, SIZE_MAX});  // of a loop around it nothing may leave it
  std::string_view end;
  AERIE_TRY(body({"endgeneration"}, &end));
  around_.pop_back();
  emit(Op::scope_end);
  return expect_tag_end();
}

}  // namespace aerie::text::chat
