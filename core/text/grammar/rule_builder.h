// Where the readers of a notation put a grammar together.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/grammar/program.h"
#include "core/text/grammar/utf8_ranges.h"
#include "kernels/status.h"

namespace aerie::text::grammar {

using Sequence = std::vector<Element>;

// Far above what people write; what a hostile grammar can make us allocate.
inline constexpr size_t kMaxElements = size_t{1} << 19;
inline constexpr uint32_t kMaxRepetition = uint32_t{1} << 16;
inline constexpr uint32_t kNoMaximum = UINT32_MAX;

// What grows past the limits is left out, and size_status() and compile() say so: a reader need not look at each step.
class RuleBuilder {
 public:
  struct Rule {
    std::vector<Sequence> alternatives;
    uint32_t owner = 0;         // the named rule that it is part of
    bool repeats = false;       // of repeat(): item, then itself
  };

  // Errors speak of a "grammar", and its rules by name, or of a "schema", where the names are paths.
  explicit RuleBuilder(std::string_view notation) : notation_(notation) {}

  // A rule that errors know by its name; it may be used before it is defined.
  uint32_t declare(std::string name);
  // The rules that are made from now on are its parts.
  void begin(uint32_t named_rule) { owner_ = rules_[named_rule].owner; }
  void define(uint32_t rule, std::vector<Sequence> alternatives);

  // One of these.
  Element choice(std::vector<Sequence> alternatives);
  Element set(const ByteSet& bytes);
  Element code_points(CodePoints ranges);
  void literal(std::string_view bytes, Sequence* out);
  // `item` from min to max times.
  void repeat(const Sequence& item, uint32_t min, uint32_t max, Sequence* out);

  bool too_large() const { return too_large_; }
  Status size_status() const { return size_status(std::string(notation_) + ":"); }
  Status size_status(const std::string& place) const;
  // AERIE_E_LIMIT: too large; unsupported: left recursion; bad_format: `root` has no finite text, or, where every rule
  // `must_end`, a named rule has none.
  Result<Program> compile(uint32_t root, bool all_must_end) const;

 private:
  bool room_for(size_t elements);
  uint32_t add_rule();
  std::string place(size_t rule) const;
  Element as_one(const Sequence& item);

  const std::string_view notation_;
  std::vector<Rule> rules_;
  std::vector<std::string> names_;  // of owners
  std::vector<ByteSet> sets_;
  std::map<ByteSet, Element> set_elements_;
  std::map<CodePoints, Element> class_elements_;
  std::unordered_map<Element, Element> repeated_;                 // x*
  std::unordered_map<Element, std::vector<Element>> up_to_;       // x{0,1}, x{0,2}, ...
  size_t elements_ = 0;
  uint32_t owner_ = 0;
  bool too_large_ = false;
};

}  // namespace aerie::text::grammar
