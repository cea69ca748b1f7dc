// {% for %}, {% break %}, {% continue %}, and what is assigned to.
#include <algorithm>

#include "core/text/template/parser.h"

namespace aerie::text::chat {

// The names in front of "in" are read twice where there is a condition: for it, and for the body.
Status Parser::for_statement() {
  const size_t targets = at_;
  while (peek().kind == TokenKind::name ? !peek().is_name("in") : peek().is(",") || peek().is("(") || peek().is(")")) ++at_;
  if (at_ == targets) return expected("the name of a variable");
  if (!take_name("in")) return expected("\"in\"");
  const auto bind = [&]() -> Status {
    const size_t behind = at_;
    at_ = targets;
    AERIE_TRY(target());
    if (!peek().is_name("in")) return expected("\"in\"");
    at_ = behind;
    return {};
  };
  AERIE_TRY(tuple(false, false));
  if (take_name("if")) {
    emit(Op::loop_begin);
    const size_t next = emit(Op::loop_next);
    emit(Op::scope_begin);
    AERIE_TRY(bind());
    AERIE_TRY(expression());
    emit(Op::scope_end);
    emit(Op::jump_if_false, 2);
    emit(Op::collect);
    jump_back(next);
    land(next);
    emit(Op::collect_end);
  }
  if (peek().is_name("recursive")) return fail("\"recursive\" is not supported", Code::unsupported);
  emit(Op::loop_begin);
  const size_t next = emit(Op::loop_next);
  emit(Op::scope_begin);
  AERIE_TRY(bind());
  emit(Op::bind_loop, static_cast<int32_t>(name_id("loop")));
  AERIE_TRY(expect_tag_end());
  around_.push_back({Around::loop, {}, next, 0});
  std::string_view end;
  AERIE_TRY(body({"else", "endfor"}, &end));
  const std::vector<size_t> breaks = std::move(around_.back().breaks);
  around_.pop_back();
  emit(Op::scope_end);
  jump_back(next);
  land(next);
  for (const size_t jump : breaks) land(jump);
  if (end == "else") {
    AERIE_TRY(expect_tag_end());
    emit(Op::loop_empty);
    const size_t over = emit(Op::jump_if_false);
    emit(Op::scope_begin);
    around_.push_back({Around::scope, {}, 0, 0});
    AERIE_TRY(body({"endfor"}, &end));
    around_.pop_back();
    emit(Op::scope_end);
    land(over);
  }
  emit(Op::loop_end);
  return expect_tag_end();
}

Status Parser::leave_loop(bool again) {
  size_t at = around_.size();
  for (; at > 0 && around_[at - 1].kind == Around::scope; --at) emit(Op::scope_end);
  const char* const name = again ? "{% continue %}" : "{% break %}";
  if (at == 0 || around_[at - 1].kind == Around::macro) return fail(std::string(name) + " outside of a loop");
  if (around_[at - 1].kind == Around::capture)
    return fail(std::string(name) + " between {% set %} and {% endset %}, or in a filter, is not supported", Code::unsupported);
  emit(Op::scope_end);
  Surrounding& loop = around_[at - 1];
  if (again) jump_back(loop.next);
  else loop.breaks.push_back(emit(Op::jump));
  return expect_tag_end();
}

// a; a, b; (a, b); a.b: stores what is on top.
Status Parser::target() {
  const Deeper deeper(&depth_);
  AERIE_TRY(deep());
  uint32_t n = 0;
  size_t unpack = SIZE_MAX;
  // Whether a comma follows is seen by the tokens in front of "=" or "in".
  int open = 0;
  for (size_t i = at_; i < tokens_.size(); ++i) {
    const Token& t = tokens_[i];
    if (t.is("(")) ++open;
    else if (t.is(")") && --open < 0) break;
    else if (t.is("=") || t.is_name("in") || t.kind == TokenKind::tag_end) break;
    else if (t.is(",") && open == 0) unpack = i;
  }
  const bool several = unpack != SIZE_MAX;
  if (several) unpack = emit(Op::unpack);
  while (true) {
    if (take_op("(")) {
      AERIE_TRY(target());
      AERIE_TRY(expect_op(")"));
    } else {
      if (peek().kind != TokenKind::name) return expected("the name of a variable");
      const std::string_view name = peek().text;
      for (const std::string_view taken : {"true", "false", "none", "True", "False", "None"})
        if (name == taken) return fail("\"" + std::string(name) + "\" cannot be assigned to");
      ++at_;
      const uint32_t id = name_id(name);
      if (take_op(".")) {
        if (peek().kind != TokenKind::name) return expected("a name behind \".\"");
        emit(Op::store_attribute, static_cast<int32_t>(id), name_id(peek().text));
        ++at_;
      } else {
        emit(Op::store, static_cast<int32_t>(id));
      }
    }
    ++n;
    if (!take_op(",") || peek().is("=") || peek().is_name("in") || peek().is(")")) break;
  }
  if (n > 1024) return fail("more than 1024 names", Code::limit);
  if (several) program_->code[unpack].n = static_cast<uint16_t>(n);
  return {};
}

}  // namespace aerie::text::chat
