// JSON Schema: arrays.
#include <algorithm>
#include <utility>

#include "core/text/grammar/schema_reader.h"

namespace aerie::text::grammar {

Status SchemaReader::array(const SchemaValue& s, const std::string& path, Alternatives* out) {
  using Kind = SchemaValue::Kind;
  const SchemaValue *items = s.find("items"), *prefix = s.find("prefixItems"), *unique = s.find("uniqueItems");
  if (unique != nullptr && !(unique->is(Kind::boolean) && !unique->truth))
    return schema_error(Code::unsupported, child_path(path, "uniqueItems"), "is not supported");
  if (prefix != nullptr && !prefix->is(Kind::array))
    return schema_error(Code::bad_format, child_path(path, "prefixItems"), "is not a list of schemas");
  if (items != nullptr && items->is(Kind::array))
    return schema_error(Code::unsupported, child_path(path, "items"),
                        "a list of schemas is not supported: its name is prefixItems");
  uint32_t min = 0, max = 0;
  AERIE_TRY(counts(s, path, "minItems", "maxItems", &min, &max));
  const auto in_front = static_cast<uint32_t>(prefix != nullptr ? prefix->items.size() : 0);
  // Who lists the first items wants these, unless it is said what comes behind them.
  const bool has_more = items != nullptr ? !items->is(Kind::boolean) || items->truth : prefix == nullptr;
  if (!has_more) max = std::min(max, in_front);
  if (min > max) return schema_error(Code::bad_format, path, "minItems is above the number of items that there may be");
  const Element open = element(ElementKind::byte, '['), close = element(ElementKind::byte, ']');
  const Element comma = json_.comma(), gap = json_.gap();
  if (min == 0) out->push_back({open, gap, close});
  if (max == 0) return {};

  Sequence body;  // from the first item on
  if (in_front == 0) {
    const Element item = items != nullptr ? rule_of(*items, child_path(path, "items")) : json_.value();
    body.push_back(item);
    builder_.repeat({comma, item}, min > 0 ? min - 1 : 0, max == kNoMaximum ? kNoMaximum : max - 1, &body);
  } else {
    Sequence behind;  // the items of the list, as many as there may and must be
    if (has_more && max > in_front) {
      const Element item = items != nullptr ? rule_of(*items, child_path(path, "items")) : json_.value();
      const uint32_t least = min > in_front ? min - in_front : 0, most = max == kNoMaximum ? kNoMaximum : max - in_front;
      builder_.repeat({comma, item}, least, most, &behind);
    }
    const std::string at = child_path(path, "prefixItems");
    for (uint32_t i = std::min(in_front, max); i-- > 0 && !builder_.too_large();) {
      Sequence now;
      if (i > 0) now = {comma};
      now.push_back(rule_of(prefix->items[i], child_path(at, std::to_string(i))));
      now.insert(now.end(), behind.begin(), behind.end());
      // The items up to this one may be all; without the first it is another array.
      if (i > 0 && i >= min) behind = {builder_.choice({std::move(now), {}})};
      else behind = {builder_.choice({std::move(now)})};
    }
    body = std::move(behind);
  }
  Sequence full = {open, gap};
  full.insert(full.end(), body.begin(), body.end());
  full.insert(full.end(), {gap, close});
  out->push_back(std::move(full));
  return {};
}

}  // namespace aerie::text::grammar
