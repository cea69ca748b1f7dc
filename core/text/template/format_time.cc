// strftime, in English whatever the locale is.
#include <cstdio>

#include "core/text/template/builtins.h"

namespace aerie::text::chat {
namespace {

constexpr const char* kDays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr const char* kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                   "July",    "August",   "September", "October", "November", "December"};

}  // namespace

Status format_time(std::string_view form, const std::tm& t, std::string* out) {
  const auto number = [&](int value, int digits, char pad) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, pad == '0' ? "%0*d" : "%*d", pad == '-' ? 1 : digits, value);
    *out += buffer;
  };
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '%') {
      *out += form[i];
      continue;
    }
    char pad = '0';
    if (++i < form.size() && form[i] == '-') pad = form[i++];  // %-d: without a zero in front
    const char kind = i < form.size() ? form[i] : '\0';
    const int hour = t.tm_hour % 12 == 0 ? 12 : t.tm_hour % 12;
    switch (kind) {
      case 'a': *out += std::string_view(kDays[t.tm_wday]).substr(0, 3); break;
      case 'A': *out += kDays[t.tm_wday]; break;
      case 'b': *out += std::string_view(kMonths[t.tm_mon]).substr(0, 3); break;
      case 'B': *out += kMonths[t.tm_mon]; break;
      case 'd': number(t.tm_mday, 2, pad); break;
      case 'e': number(t.tm_mday, 2, pad == '-' ? '-' : ' '); break;
      case 'm': number(t.tm_mon + 1, 2, pad); break;
      case 'y': number(t.tm_year % 100, 2, pad); break;
      case 'Y': number(t.tm_year + 1900, 1, '0'); break;
      case 'j': number(t.tm_yday + 1, 3, pad); break;
      case 'H': number(t.tm_hour, 2, pad); break;
      case 'I': number(hour, 2, pad); break;
      case 'M': number(t.tm_min, 2, pad); break;
      case 'S': number(t.tm_sec, 2, pad); break;
      case 'p': *out += t.tm_hour < 12 ? "AM" : "PM"; break;
      case 'F': AERIE_TRY(format_time("%Y-%m-%d", t, out)); break;
      case 'T': AERIE_TRY(format_time("%H:%M:%S", t, out)); break;
      case '%': *out += '%'; break;
      default:
        return error(Code::unsupported, std::string("strftime_now: \"%") + (kind != '\0' ? std::string(1, kind) : "") +
                                            "\" is not supported");
    }
  }
  return {};
}

}  // namespace aerie::text::chat
