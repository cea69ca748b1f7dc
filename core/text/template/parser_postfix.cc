// What stands behind a value: attributes, subscripts, calls, filters, tests; and lists and dicts.
#include "core/text/template/builtins.h"
#include "core/text/template/parser.h"

namespace aerie::text::chat {

Status Parser::postfix() {
  while (true) {
    if (peek().is(".") || peek().is("[")) {
      AERIE_TRY(subscript());
    } else if (take_op("(")) {
      uint16_t n = 0;
      int32_t names = -1;
      uint8_t spread = 0;
      AERIE_TRY(arguments(&n, &names, &spread));
      emit(Op::call, names, 0, n, spread);
    } else {
      return {};
    }
  }
}

Status Parser::filters_and_tests() {
  while (true) {
    if (take_op("|")) {
      AERIE_TRY(filter());
    } else if (take_name("is")) {
      AERIE_TRY(test());
    } else if (peek().is("(")) {
      AERIE_TRY(postfix());
    } else {
      return {};
    }
  }
}

Status Parser::subscript() {
  if (take_op(".")) {
    if (peek().kind == TokenKind::name) {
      emit(Op::attribute, static_cast<int32_t>(name_id(peek().text)));
      ++at_;
      return {};
    }
    if (peek().kind != TokenKind::integer) return expected("a name behind \".\"");
    AERIE_TRY(numeral());
    emit(Op::item);
    return {};
  }
  ++at_;  // [
  uint32_t n = 0;
  while (!peek().is("]")) {
    if (n > 0) {
      if (program_->code.back().op == Op::slice) return fail("slices in a tuple are not supported", Code::unsupported);
      AERIE_TRY(expect_op(","));
      if (peek().is("]")) break;
    }
    AERIE_TRY(one_subscript());
    ++n;
  }
  ++at_;
  if (n == 0) return fail("a subscript without a value");
  if (n > 1) emit(Op::tuple, 0, 0, static_cast<uint16_t>(n));
  if (n > 1 || program_->code.back().op != Op::slice) emit(Op::item);
  return {};
}

Status Parser::one_subscript() {
  if (!peek().is(":")) {
    AERIE_TRY(expression());
    if (!peek().is(":")) {
      // So that what ends with a slice of its own is not taken for one: x[y[1:]].
      if (program_->code.back().op == Op::slice) emit(Op::jump, 1);
      return {};
    }
  } else {
    emit(Op::absent);
  }
  for (int part = 1; part < 3; ++part) {
    if (take_op(":") && !peek().is(":") && !peek().is("]") && !peek().is(",")) {
      AERIE_TRY(expression());
    } else {
      emit(Op::absent);
    }
  }
  emit(Op::slice);
  return {};
}

Status Parser::arguments(uint16_t* n, int32_t* names, uint8_t* spread) {
  std::vector<uint32_t> named;
  uint32_t plain = 0;
  while (!take_op(")")) {
    if (plain + named.size() > 0) {
      AERIE_TRY(expect_op(","));
      if (take_op(")")) break;
    }
    if (peek().is("*") && spread != nullptr && named.empty() && *spread == 0) {
      ++at_;
      *spread = 1;
    } else if (peek().is("*") || peek().is("**") || (spread != nullptr && *spread != 0)) {
      return fail("\"*\" before other arguments, and \"**\", are not supported", Code::unsupported);
    }
    if (peek().kind == TokenKind::name && ahead().is("=")) {
      named.push_back(name_id(peek().text));
      at_ += 2;
    } else if (!named.empty()) {
      return expected("an argument with its name, as those before");
    } else {
      ++plain;
    }
    AERIE_TRY(expression());
  }
  if (plain + named.size() > 1024) return fail("more than 1024 arguments", Code::limit);
  *n = static_cast<uint16_t>(plain);
  *names = -1;
  if (named.empty()) return {};
  *names = static_cast<int32_t>(program_->name_lists.size());
  program_->name_lists.push_back(std::move(named));
  return {};
}

// Jinja2 does the same: within an {% if %}, what is not there fails only where it is reached.
Status Parser::refuse(const std::string& what) {
  if (conditional_ == 0) return fail(what, Code::unsupported);
  program_->texts.push_back(program_->strings.emplace_back(what));
  emit(Op::refuse, static_cast<int32_t>(program_->texts.size() - 1));
  return {};
}

Status Parser::filter() {
  if (peek().kind != TokenKind::name) return expected("the name of a filter");
  const std::string_view name = peek().text;
  const int id = filter_id(name);
  if (id < 0) AERIE_TRY(refuse("filter '" + std::string(name) + "' is not supported"));
  ++at_;
  uint16_t n = 0;
  int32_t names = -1;
  if (take_op("(")) AERIE_TRY(arguments(&n, &names, nullptr));
  emit(Op::filter, names, 0, n, static_cast<uint8_t>(id));
  return {};
}

Status Parser::test() {
  const bool negated = take_name("not");
  if (peek().kind != TokenKind::name) return expected("the name of a test");
  const std::string_view name = peek().text;
  const int id = test_id(name);
  if (id < 0) AERIE_TRY(refuse("test '" + std::string(name) + "' is not supported"));
  ++at_;
  uint16_t n = 0;
  int32_t names = -1;
  const Token& next = peek();
  const bool value = next.kind == TokenKind::string || next.kind == TokenKind::integer || next.kind == TokenKind::number ||
                     next.is("[") || next.is("{") ||
                     (next.kind == TokenKind::name && next.text != "else" && next.text != "or" && next.text != "and");
  if (take_op("(")) {
    AERIE_TRY(arguments(&n, &names, nullptr));
  } else if (value) {
    if (next.is_name("is")) return fail("tests cannot follow one another: \"is ... is\"");
    AERIE_TRY(primary());
    AERIE_TRY(postfix());
    n = 1;
  }
  emit(Op::test, names, 0, n, static_cast<uint8_t>(id));
  if (negated) emit(Op::invert);
  return {};
}

Status Parser::display_list() {
  uint32_t n = 0;
  while (!take_op("]")) {
    if (n > 0) {
      AERIE_TRY(expect_op(","));
      if (take_op("]")) break;
    }
    AERIE_TRY(expression());
    if (++n > UINT16_MAX) return fail("a list of more than 65535 values", Code::limit);
  }
  emit(Op::list, 0, 0, static_cast<uint16_t>(n));
  return {};
}

Status Parser::display_dict() {
  uint32_t n = 0;
  while (!take_op("}")) {
    if (n > 0) {
      AERIE_TRY(expect_op(","));
      if (take_op("}")) break;
    }
    AERIE_TRY(expression());
    AERIE_TRY(expect_op(":"));
    AERIE_TRY(expression());
    if (++n > UINT16_MAX) return fail("a dict of more than 65535 values", Code::limit);
  }
  emit(Op::dict, 0, 0, static_cast<uint16_t>(n));
  return {};
}

}  // namespace aerie::text::chat
