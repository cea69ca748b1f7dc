// Expressions, in jinja2's order of precedence.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/text/template/parser.h"

namespace aerie::text::chat {
namespace {

struct Operator {
  std::string_view text;
  int level;  // the higher the closer
  Binary id;
};
constexpr Operator kOperators[] = {
    {"+", 0, Binary::add},      {"-", 0, Binary::subtract},      {"~", 1, Binary::concat},    {"*", 2, Binary::multiply},
    {"/", 2, Binary::divide},   {"//", 2, Binary::floor_divide}, {"%", 2, Binary::remainder}, {"**", 3, Binary::power},
};
constexpr int kHighest = 3;

struct Comparison {
  std::string_view text;
  Compare id;
};
constexpr Comparison kComparisons[] = {
    {"==", Compare::equal}, {"!=", Compare::not_equal},   {"<", Compare::less},
    {"<=", Compare::less_equal}, {">", Compare::greater}, {">=", Compare::greater_equal},
};

}  // namespace

Status Parser::expression() {
  const Deeper deeper(&depth_);
  AERIE_TRY(deep());
  size_t begin = here();
  AERIE_TRY(or_expression());
  std::vector<size_t> ends;
  while (take_name("if")) {
    // What is written first is done last: jumps are relative, so that instructions can be moved.
    auto& code = program_->code;
    const std::vector<Instruction> value(code.begin() + static_cast<std::ptrdiff_t>(begin), code.end());
    code.resize(begin);
    AERIE_TRY(or_expression());
    const size_t otherwise = emit(Op::jump_if_false);
    code.insert(code.end(), value.begin(), value.end());
    const size_t end = emit(Op::jump);
    land(otherwise);
    if (take_name("else")) {
      AERIE_TRY(expression());
    } else {
      emit_constant(Value::undefined());
    }
    land(end);
  }
  return {};
}

Status Parser::or_expression() {
  AERIE_TRY(and_expression());
  while (take_name("or")) {
    const size_t jump = emit(Op::or_jump);
    AERIE_TRY(and_expression());
    land(jump);
  }
  return {};
}

Status Parser::and_expression() {
  AERIE_TRY(not_expression());
  while (take_name("and")) {
    const size_t jump = emit(Op::and_jump);
    AERIE_TRY(not_expression());
    land(jump);
  }
  return {};
}

Status Parser::not_expression() {
  size_t n = 0;
  while (take_name("not")) ++n;
  AERIE_TRY(comparison());
  for (; n > 0; --n) emit(Op::invert);
  return {};
}

Status Parser::comparison() {
  AERIE_TRY(operation(0));
  std::vector<size_t> chain;
  for (size_t last = SIZE_MAX;; ) {
    Compare id = Compare::equal;
    const auto at = std::find_if(std::begin(kComparisons), std::end(kComparisons), [&](const Comparison& c) { return peek().is(c.text); });
    if (at != std::end(kComparisons)) {
      id = at->id;
      ++at_;
    } else if (take_name("in")) {
      id = Compare::in;
    } else if (peek().is_name("not") && ahead().is_name("in")) {
      at_ += 2;
      id = Compare::not_in;
    } else {
      break;
    }
    if (last != SIZE_MAX) {
      program_->code[last].op = Op::compare_chain;
      chain.push_back(last);
    }
    AERIE_TRY(operation(0));
    last = emit(Op::compare, 0, 0, 0, static_cast<uint8_t>(id));
  }
  for (const size_t jump : chain) land(jump);
  return {};
}

Status Parser::operation(int level) {
  AERIE_TRY(unary(true));
  while (true) {
    const auto at = std::find_if(std::begin(kOperators), std::end(kOperators),
                                 [&](const Operator& o) { return o.level >= level && peek().is(o.text); });
    if (at == std::end(kOperators)) return {};
    ++at_;
    if (at->level == kHighest) AERIE_TRY(unary(true));
    else AERIE_TRY(operation(at->level + 1));
    emit(Op::binary, 0, 0, 0, static_cast<uint8_t>(at->id));
  }
}

Status Parser::unary(bool with_filters) {
  const Deeper deeper(&depth_);
  AERIE_TRY(deep());
  if (take_op("-")) {
    AERIE_TRY(unary(false));
    emit(Op::negate);
  } else if (take_op("+")) {
    AERIE_TRY(unary(false));
    emit(Op::plus);
  } else {
    AERIE_TRY(primary());
  }
  AERIE_TRY(postfix());
  return with_filters ? filters_and_tests() : Status();
}

Status Parser::primary() {
  const Token token = peek();
  switch (token.kind) {
    case TokenKind::name: break;
    case TokenKind::string: return strings();
    case TokenKind::integer:
    case TokenKind::number: return numeral();
    default:
      if (take_op("(")) {
        AERIE_TRY(tuple(true, true));
        return expect_op(")");
      }
      if (take_op("[")) return display_list();
      if (take_op("{")) return display_dict();
      return expected("a value");
  }
  ++at_;
  const std::string_view name = token.text;
  if (name == "true" || name == "True") emit_constant(Value::boolean(true));
  else if (name == "false" || name == "False") emit_constant(Value::boolean(false));
  else if (name == "none" || name == "None") emit_constant(Value::none());
  else emit(Op::load, static_cast<int32_t>(name_id(name)));
  for (size_t i = around_.size(); i > 0; --i) {  // of the macro that this is in
    if (around_[i - 1].kind != Around::macro || around_[i - 1].macro == SIZE_MAX) continue;
    MacroCode& macro = program_->macros[around_[i - 1].macro];
    macro.takes_caller = macro.takes_caller || name == "caller";
    macro.takes_more = macro.takes_more || name == "varargs";
    macro.takes_named = macro.takes_named || name == "kwargs";
    break;
  }
  return {};
}

Status Parser::numeral() {
  std::string digits;
  for (const char c : peek().text)
    if (c != '_') digits += c;
  const bool whole = peek().kind == TokenKind::integer;
  const char* end = digits.data() + digits.size();
  int64_t i = 0;
  double d = 0;
  const auto read = whole ? std::from_chars(digits.data(), end, i) : std::from_chars(digits.data(), end, d);
  if (read.ec != std::errc() || read.ptr != end) return fail("a number as large as " + digits + " is not supported", Code::unsupported);
  ++at_;
  emit_constant(whole ? Value::integer(i) : Value::number(d));
  return {};
}

Status Parser::strings() {
  std::string all;
  const std::string_view first = peek().text;
  const bool plain = first.find('\\') == std::string_view::npos && ahead().kind != TokenKind::string;
  while (!plain && peek().kind == TokenKind::string) {
    auto text = unescaped_string(peek().text);
    if (!text.ok()) return fail(text.status().message(), text.status().code());
    all += *text;
    ++at_;
  }
  if (plain) {
    ++at_;
    emit_string(first);
  } else {
    emit_string(program_->strings.emplace_back(std::move(all)));
  }
  return {};
}

bool Parser::tuple_ends() const {
  const Token& t = peek();
  return t.kind == TokenKind::print_end || t.kind == TokenKind::tag_end || t.is(")");
}

Status Parser::tuple(bool conditional, bool parentheses) {
  uint32_t n = 0;
  bool comma = false;
  while (!tuple_ends()) {
    if (conditional) {
      AERIE_TRY(expression());
    } else {
      AERIE_TRY(or_expression());
    }
    ++n;
    if (!take_op(",")) break;
    comma = true;
  }
  if (n == 0 && !parentheses) return expected("a value");
  if (n > UINT16_MAX) return fail("a tuple of more than 65535 values", Code::limit);
  if (comma || n == 0) emit(Op::tuple, 0, 0, static_cast<uint16_t>(n));
  return {};
}

}  // namespace aerie::text::chat
