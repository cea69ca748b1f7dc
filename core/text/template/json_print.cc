// A value as Python's json.dumps writes it.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/text/template/print.h"
#include "core/text/template/python_text.h"

namespace aerie::text::chat {
namespace {

void append_quoted(std::string_view text, bool ascii, std::string* out) {
  *out += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t n = character_size(text[at]);
    const uint32_t c = character_at(text, at);
    char escape[16];
    if (c == '"' || c == '\\') (*out += '\\') += static_cast<char>(c);
    else if (c == '\n') *out += "\\n";
    else if (c == '\r') *out += "\\r";
    else if (c == '\t') *out += "\\t";
    else if (c == '\f') *out += "\\f";
    else if (c == '\b') *out += "\\b";
    else if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000)) *out += (std::snprintf(escape, sizeof escape, "\\u%04x", c), escape);
    else if (ascii && c >= 0x10000)
      *out += (std::snprintf(escape, sizeof escape, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF)), escape);
    else *out += text.substr(at, n);
    at += n;
  }
  *out += '"';
}

std::string json_number(double d) {
  if (std::isnan(d)) return "NaN";
  if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
  return number_text(d);
}

class Writer {
 public:
  Writer(const JsonForm& form, std::string* out) : form_(form), out_(out) {}

  Status value(const Value& v) {
    if (out_->size() > kMaxOutputBytes) return error(Code::limit, "a text is too long");
    switch (v.kind()) {
      case Kind::none: *out_ += "null"; return {};
      case Kind::boolean: *out_ += v.truth() ? "true" : "false"; return {};
      case Kind::integer: *out_ += std::to_string(v.as_integer()); return {};
      case Kind::number: *out_ += json_number(v.as_number()); return {};
      case Kind::string: append_quoted(v.text(), form_.ascii, out_); return {};
      case Kind::list:
      case Kind::tuple: return list(v.list());
      case Kind::dict: return dict(v.dict());
      case Kind::undefined: return undefined_error(v);
      default: return type_error(std::string("a ") + v.type_name() + " cannot be written as JSON");
    }
  }

 private:
  void line() {
    if (!form_.lines) return;
    *out_ += '\n';
    for (int i = 0; i < depth_; ++i) *out_ += form_.indent;
  }
  Status list(const List& l) {
    if (l.items.empty()) return *out_ += "[]", Status();
    l.heap()->spend(l.items.size());
    *out_ += '[';
    ++depth_;
    for (size_t i = 0; i < l.items.size(); ++i) {
      if (i > 0) *out_ += form_.item_separator;
      line();
      AERIE_TRY(value(l.items[i]));
    }
    --depth_;
    line();
    *out_ += ']';
    return {};
  }
  Status key(const Value& k) {
    switch (k.kind()) {
      case Kind::string: append_quoted(k.text(), form_.ascii, out_); return {};
      case Kind::none:
      case Kind::boolean:
      case Kind::integer:
      case Kind::number: *out_ += '"'; AERIE_TRY(value(k)); *out_ += '"'; return {};
      default: return type_error(std::string("a ") + k.type_name() + " is no key in JSON");
    }
  }
  Status dict(const Dict& d) {
    if (d.members.empty()) return *out_ += "{}", Status();
    d.heap()->spend(d.members.size());
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& m : d.members) members.push_back(&m);
    if (form_.sorted) {
      Status failed;
      std::stable_sort(members.begin(), members.end(), [&](const auto* a, const auto* b) {
        const auto o = order(d.heap(), a->first, b->first);
        if (!o.ok()) failed = o.status();
        return o.ok() && *o < 0;
      });
      AERIE_TRY(failed);
    }
    *out_ += '{';
    ++depth_;
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) *out_ += form_.item_separator;
      line();
      AERIE_TRY(key(members[i]->first));
      *out_ += form_.key_separator;
      AERIE_TRY(value(members[i]->second));
    }
    --depth_;
    line();
    *out_ += '}';
    return {};
  }

  const JsonForm& form_;
  std::string* out_;
  int depth_ = 0;
};

}  // namespace

Status append_json(const Value& v, const JsonForm& form, std::string* out) { return Writer(form, out).value(v); }

}  // namespace aerie::text::chat
