#include "core/text/template/lexer.h"

#include <algorithm>
#include <iterator>

#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> read() {
    while (at_ < source_.size()) {
      size_t begin = at_;
      do {
        begin = source_.find('{', begin);
        if (begin == std::string_view::npos || begin + 1 >= source_.size()) begin = source_.size();
        else if (const char c = source_[begin + 1]; c != '%' && c != '{' && c != '#') ++begin;
        else break;
      } while (begin < source_.size());
      if (begin >= source_.size()) {
        data(source_.substr(at_));
        at_ = source_.size();
        break;
      }
      AERIE_TRY(tag(begin));
    }
    add(TokenKind::end, {});
    return std::move(tokens_);
  }

 private:
  Status fail(const std::string& what) const { return template_error(Code::bad_format, line_, what); }
  void add(TokenKind kind, std::string_view text) { tokens_.push_back({kind, line_, text}); }
  void data(std::string_view text) {
    if (!text.empty()) add(TokenKind::data, text);
  }
  void move_to(size_t at) {
    line_ += static_cast<uint32_t>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                              source_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    line_starts_ = at > at_ ? source_[at - 1] == '\n' : line_starts_;
    at_ = at;
  }
  std::string_view rest() const { return source_.substr(at_); }
  size_t behind_space(size_t at) const { return source_.size() - strip_left(source_.substr(at)).size(); }

  // What begins at `begin`, and the text in front of it.
  Status tag(size_t begin) {
    const char kind = source_[begin + 1];
    const char sign = begin + 2 < source_.size() && (source_[begin + 2] == '-' || source_[begin + 2] == '+') ? source_[begin + 2] : '\0';
    std::string_view text = source_.substr(at_, begin - at_);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+' && kind != '{') {  // what is between the beginning of the line and the tag
      const size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
      if ((line > 0 || line_starts_) && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
    }
    data(text);
    move_to(begin + (sign != '\0' ? 3 : 2));
    if (kind == '#') return comment();
    if (kind == '%') {
      const size_t name = behind_space(at_);
      if (source_.substr(name).starts_with("raw")) {
        const size_t close = behind_space(name + 3);
        if (source_.substr(close).starts_with("%}") || source_.substr(close).starts_with("-%}")) return raw(close);
      }
    }
    add(kind == '%' ? TokenKind::tag_begin : TokenKind::print_begin, {});
    return expression(kind == '%');
  }

  // Behind "%}", "-%}" or "+%}" at `at`, or 0 where there is none of them. trim_blocks takes a line break with it.
  size_t behind_end(size_t at, std::string_view end, bool trim) const {
    const std::string_view text = source_.substr(at);
    if (text.starts_with('-') && text.substr(1).starts_with(end)) return behind_space(at + 1 + end.size());
    if (trim && text.starts_with('+') && text.substr(1).starts_with(end)) return at + 1 + end.size();
    if (!text.starts_with(end)) return 0;
    at += end.size();
    return trim && source_.substr(at).starts_with('\n') ? at + 1 : at;
  }

  Status comment() {
    for (size_t at = at_; (at = source_.find('#', at)) != std::string_view::npos; ++at) {
      const size_t sign = at > at_ && (source_[at - 1] == '-' || source_[at - 1] == '+') ? at - 1 : at;
      const size_t end = behind_end(sign, "#}", true);
      if (end == 0) continue;
      move_to(end);
      return {};
    }
    return fail("this comment is not closed");
  }

  Status raw(size_t close) {
    move_to(source_[close] == '-' ? behind_space(close + 3) : close + 2);
    for (size_t at = at_; (at = source_.find("{%", at)) != std::string_view::npos; ++at) {
      size_t name = at + 2;
      const char sign = name < source_.size() ? source_[name] : '\0';
      if (sign == '-' || sign == '+') ++name;
      name = behind_space(name);
      if (!source_.substr(name).starts_with("endraw")) continue;
      const size_t end = behind_end(behind_space(name + 6), "%}", true);
      if (end == 0) continue;
      std::string_view text = source_.substr(at_, at - at_);
      if (sign == '-') {
        text = strip_right(text);
      } else if (sign != '+') {
        const size_t line = text.rfind('\n') + 1;
        if ((line > 0 || line_starts_) && strip_left(text.substr(line)).empty()) text = text.substr(0, line);
      }
      data(text);
      move_to(end);
      return {};
    }
    return fail("this {% raw %} is not closed");
  }

  // From behind "{{" or "{%" to its end.
  Status expression(bool tag) {
    std::string open;  // brackets
    while (true) {
      if (open.empty()) {
        if (const size_t end = behind_end(at_, tag ? "%}" : "}}", tag)) {
          add(tag ? TokenKind::tag_end : TokenKind::print_end, {});
          move_to(end);
          return {};
        }
      }
      if (at_ >= source_.size()) return fail(tag ? "expected \"%}\", found the end" : "expected \"}}\", found the end");
      if (const size_t next = behind_space(at_); next != at_) {
        move_to(next);
        continue;
      }
      const char c = source_[at_];
      if (is_digit(c)) AERIE_TRY(numeral());
      else if (is_name_start(c)) name();
      else if (c == '\'' || c == '"') AERIE_TRY(string(c));
      else AERIE_TRY(op(&open));
    }
  }

  void name() {
    size_t end = at_;
    while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
    take(TokenKind::name, end - at_);
  }
  void take(TokenKind kind, size_t size) {
    add(kind, source_.substr(at_, size));
    move_to(at_ + size);
  }

  Status numeral() {
    const auto digits = [&](size_t at) {
      while (at < source_.size() && (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() && is_digit(source_[at + 1]))))
        ++at;
      return at;
    };
    if (source_[at_] == '0' && at_ + 1 < source_.size() && (std::string_view("xXoObB").find(source_[at_ + 1]) != std::string_view::npos))
      return template_error(Code::unsupported, line_, "numbers in other bases than ten are not supported");
    size_t end = digits(at_);
    bool whole = true;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1]) && !(at_ > 0 && source_[at_ - 1] == '.')) {
      end = digits(end + 1);
      whole = false;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        end = digits(exponent);
        whole = false;
      }
    }
    take(whole ? TokenKind::integer : TokenKind::number, end - at_);
    return {};
  }

  Status string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fail("this text is not closed");
    add(TokenKind::string, source_.substr(at_ + 1, end - at_ - 1));
    move_to(end + 1);
    return {};
  }

  Status op(std::string* open) {
    static constexpr std::string_view kOps[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                                "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto op = std::find_if(std::begin(kOps), std::end(kOps), [&](std::string_view o) { return rest().starts_with(o); });
    if (op == std::end(kOps)) return fail("unexpected \"" + std::string(rest().substr(0, character_size(rest()[0]))) + "\"");
    const char c = (*op)[0];
    if (c == '(' || c == '[' || c == '{') {
      open->push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open->empty() || open->back() != c) return fail(std::string("unexpected \"") + c + "\"");
      open->pop_back();
    }
    take(TokenKind::op, op->size());
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  bool line_starts_ = true;  // what was taken last ended with a line break
  std::vector<Token> tokens_;
};

}  // namespace

Status template_error(Code code, uint32_t line, const std::string& what) {
  return error(code, "chat template, line " + std::to_string(line) + ": " + what);
}

std::string normalized_source(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
      continue;
    }
    out += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

Result<std::vector<Token>> tokens_of(std::string_view source) { return Lexer(source).read(); }

}  // namespace aerie::text::chat
