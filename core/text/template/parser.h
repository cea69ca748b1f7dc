// Reads a template and writes its program as it goes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/text/template/lexer.h"
#include "core/text/template/program.h"

namespace aerie::text::chat {

class Parser {
 public:
  explicit Parser(Program* program) : program_(program) {}
  Status read();

 private:
  // Expressions and statements in one another: each costs stack, of which a thread may have 64 KB.
  static constexpr int kMaxDepth = 48;
  class Deeper {
   public:
    explicit Deeper(int* depth) : depth_(depth) { ++*depth_; }
    ~Deeper() { --*depth_; }

   private:
    int* depth_;
  };

  // What surrounds a statement: what "break" has to leave.
  struct Surrounding {
    enum class Kind : uint8_t { loop, scope, capture, macro } kind;
    std::vector<size_t> breaks;  // jumps to what is behind a loop
    size_t next = 0;             // where a loop goes on
    size_t macro = 0;
  };
  using Around = Surrounding::Kind;

  const Token& peek() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  bool take_op(std::string_view op);
  bool take_name(std::string_view name);
  Status expect_op(std::string_view op);
  Status expect_tag_end();
  Status fail(const std::string& what, Code code = Code::bad_format) const { return template_error(code, peek().line, what); }
  Status expected(const std::string& what) const;
  Status deep() const;

  size_t emit(Op op, int32_t a = 0, uint32_t b = 0, uint16_t n = 0, uint8_t id = 0);
  size_t here() const { return program_->code.size(); }
  void land(size_t jump) { program_->code[jump].a = static_cast<int32_t>(here() - jump); }  // the jump comes here
  void jump_back(size_t to) { emit(Op::jump, static_cast<int32_t>(to) - static_cast<int32_t>(here())); }
  uint32_t name_id(std::string_view name);
  void emit_string(std::string_view text);
  void emit_constant(Value v);

  // parser_expression.cc: each leaves one value.
  Status expression();  // with "x if y else z"
  Status or_expression();
  Status and_expression();
  Status not_expression();
  Status comparison();
  Status operation(int level);
  Status unary(bool with_filters);
  Status primary();
  Status numeral();
  Status strings();
  // a, b, ...: a tuple where there is a comma.
  Status tuple(bool conditional, bool parentheses);
  bool tuple_ends() const;
  // parser_postfix.cc
  Status postfix();
  Status filters_and_tests();
  Status subscript();
  Status one_subscript();
  Status filter();
  Status test();
  Status display_list();
  Status display_dict();
  // Behind "(": values and their number, names of those that have one.
  Status arguments(uint16_t* n, int32_t* names, uint8_t* spread);
  Status refuse(const std::string& what);

  // parser_statement.cc
  Status body(std::initializer_list<std::string_view> ends, std::string_view* end);  // up to "{% end"
  Status statement(std::string_view name);
  Status print();
  Status if_statement();
  Status set_statement();
  Status with_statement();
  Status captured(std::string_view end_tag, size_t* behind);
  Status filter_statement();
  Status generation();
  // parser_loop.cc
  Status for_statement();
  Status leave_loop(bool again);
  Status target();  // stores what is on top
  // parser_macro.cc
  Status macro_statement();
  Status call_statement();
  Status signature(size_t macro);
  Status macro_body(size_t macro, size_t over, std::string_view end);

  Program* program_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int conditional_ = 0;  // how many {% if %} this is in
  std::vector<Surrounding> around_;
};

}  // namespace aerie::text::chat
