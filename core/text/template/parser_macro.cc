// {% macro %} and {% call %}: their code stands where they do, with a jump over it.
#include "core/text/template/parser.h"

namespace aerie::text::chat {

Status Parser::macro_statement() {
  if (peek().kind != TokenKind::name) return expected("the name of a macro");
  const std::string_view name = peek().text;
  ++at_;
  const size_t macro = program_->macros.size();
  program_->macros.emplace_back().name = name;
  emit(Op::macro, static_cast<int32_t>(macro));
  emit(Op::store, static_cast<int32_t>(name_id(name)));
  const size_t over = emit(Op::jump);
  AERIE_TRY(expect_op("("));
  return macro_body(macro, over, "endmacro");
}

// Behind "(" of its arguments; or, of a call, behind what is called.
Status Parser::macro_body(size_t macro, size_t over, std::string_view end) {
  program_->macros[macro].begin = static_cast<uint32_t>(here());
  around_.push_back({Around::macro, {}, 0, macro});
  AERIE_TRY(signature(macro));
  AERIE_TRY(expect_tag_end());
  std::string_view found;
  AERIE_TRY(body({end}, &found));
  around_.pop_back();
  emit(Op::end_macro);
  land(over);
  return expect_tag_end();
}

Status Parser::signature(size_t macro) {
  bool defaults = false;
  while (!take_op(")")) {
    if (!program_->macros[macro].arguments.empty()) {
      AERIE_TRY(expect_op(","));
      if (take_op(")")) break;
    }
    if (peek().kind != TokenKind::name) return expected("the name of an argument");
    const uint32_t id = name_id(peek().text);
    ++at_;
    program_->macros[macro].arguments.push_back(id);
    if (program_->macros[macro].arguments.size() > 1024) return fail("more than 1024 arguments", Code::limit);
    if (take_op("=")) {
      const size_t given = emit(Op::jump_if_given, 0, id);
      AERIE_TRY(expression());
      emit(Op::store, static_cast<int32_t>(id));
      land(given);
      defaults = true;
    } else if (defaults) {
      return fail("an argument without a default behind one that has it");
    }
  }
  return {};
}

Status Parser::call_statement() {
  const size_t signature_at = at_;
  const bool with_arguments = take_op("(");
  if (with_arguments)  // read again when the code of the call is there
    for (int open = 1; open > 0 && peek().kind != TokenKind::tag_end; ++at_) open += peek().is("(") ? 1 : peek().is(")") ? -1 : 0;
  AERIE_TRY(expression());
  Instruction call = program_->code.back();
  if (call.op != Op::call) return fail("{% call %} wants a call");
  program_->code.pop_back();
  const size_t macro = program_->macros.size();
  program_->macros.emplace_back().name = "caller";
  emit(Op::macro, static_cast<int32_t>(macro));
  std::vector<uint32_t> names;
  if (call.a >= 0) names = program_->name_lists[static_cast<size_t>(call.a)];
  names.push_back(name_id("caller"));
  emit(Op::call, static_cast<int32_t>(program_->name_lists.size()), 0, call.n);
  program_->name_lists.push_back(std::move(names));
  emit(Op::print);
  const size_t over = emit(Op::jump);
  const size_t behind = at_;
  if (peek().kind != TokenKind::tag_end) return expected("\"%}\"");
  if (!with_arguments) {
    program_->macros[macro].begin = static_cast<uint32_t>(here());
    around_.push_back({Around::macro, {}, 0, macro});
  } else {
    at_ = signature_at + 1;
    program_->macros[macro].begin = static_cast<uint32_t>(here());
    around_.push_back({Around::macro, {}, 0, macro});
    AERIE_TRY(signature(macro));
    at_ = behind;
  }
  AERIE_TRY(expect_tag_end());
  std::string_view found;
  AERIE_TRY(body({"endcall"}, &found));
  around_.pop_back();
  emit(Op::end_macro);
  land(over);
  return expect_tag_end();
}

}  // namespace aerie::text::chat
