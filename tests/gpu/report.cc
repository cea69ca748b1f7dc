#include "tests/gpu/report.h"

#include <cstdio>
#include <optional>

namespace aerie::gpu_bench {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class... Args>
std::string text(const char* format, Args... args) {
  char line[256];
  std::snprintf(line, sizeof line, format, args...);
  return line;
}

// The object in `list` whose `key` is `value`; null: none.
json find(const json& list, const char* key, const json& value) {
  if (list.is_array())
    for (const json& x : list)
      if (x.value(key, json()) == value) return x;
  return {};
}
std::optional<double> number(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_number()) return {};
  return object[key].get<double>();
}

class Bars {
 public:
  void less(const std::string& name, std::optional<double> measured, double limit) { add(name, measured, limit, true); }
  void more(const std::string& name, std::optional<double> measured, double limit) { add(name, measured, limit, false); }
  ordered_json take() { return std::move(bars_); }

 private:
  void add(const std::string& name, std::optional<double> measured, double limit, bool less) {
    ordered_json bar = {{"name", name}, {"measured", nullptr}, {"limit", limit}, {"better", less ? "less" : "more"}, {"holds", nullptr}};
    if (measured) {
      bar["measured"] = *measured;
      bar["holds"] = less ? *measured <= limit : *measured >= limit;
    }
    bars_.push_back(std::move(bar));
  }
  ordered_json bars_ = ordered_json::array();
};

void decode(const json& bench, const json& torch, Bars* bars, ordered_json* lines) {
  const json target = find(bench.value("targets", json()), "dtype", "bf16");
  const json passes = target.is_object() ? target.value("passes", json()) : json();
  const json one = find(passes, "rows", 1), wide = find(passes, "rows", 64);
  bars->more("decode of one token, bf16: part of the read bandwidth", number(one, "of_bandwidth"), 0.85);
  const auto us1 = number(one, "us"), us64 = number(wide, "us");
  bars->less("verify of 64 rows / one row", us1 && us64 ? std::optional(*us64 / *us1) : std::nullopt, 1.25);
  if (const auto theirs = number(torch, "decode_us"); theirs && us1)
    lines->push_back(text("PyTorch (%s) decodes one token in %.0f us, ours in %.0f us: %.2f x", torch.value("how", std::string("?")).c_str(), *theirs,
                          *us1, *theirs / *us1));
  if (const std::string library = target.is_object() ? target.value("cublaslt", std::string("loaded")) : "loaded"; library != "loaded")
    lines->push_back("cuBLASLt was not timed: " + library);
  if (target.is_object())
    for (const json& p : target.value("prefill", json::array()))
      if (const auto theirs = number(p, "cublaslt_us"))
        lines->push_back(text("gate and up over %d rows: %.0f us, cuBLASLt (not bit-exact) %.0f us", p["rows"].get<int>(), p["us"].get<double>(), *theirs));
}

void eagle_level(const json& bench, Bars* bars) {
  const json level = bench.value("eagle_level", json());
  const json ten = level.is_object() ? find(level.value("passes", json()), "rows", 10) : json();
  const auto us = number(ten, "us"), floor = number(level, "floor_us");
  bars->less("EAGLE level of 10 rows, us over 1.5 x its floor", us && floor ? std::optional(*us - 1.5 * *floor) : std::nullopt, 15);
}

void cycles(const json& inflated, const json& bench, Bars* bars, ordered_json* lines) {
  const auto bandwidth = number(bench, "read_bandwidth"), target_bytes = number(inflated, "target_bytes");
  if (!inflated.is_object() || !bandwidth || !target_bytes) {
    bars->less("cycle of the inflated model / its bytes at read bandwidth", {}, 1.3);
    bars->less("host gap in a cycle, us", {}, 50);
    return;
  }
  for (const json& row : inflated.value("rows", json::array())) {
    const std::string drafter = row.value("drafter", "none");
    if (drafter == "none") continue;
    const json file = inflated.value("drafters", json::object()).value(drafter, json());
    const std::string name = text("%s, %s", drafter.substr(drafter.rfind('/') + 1).c_str(), row.value("tree", "?").c_str());
    const auto pass = number(file, "pass_bytes");
    const double ms = row.value("draft_ms", 0.0) + row.value("verify_ms", 0.0) + row.value("other_ms", 0.0);
    const double bytes = *target_bytes + (pass ? row.value("draft_passes", 0.0) * *pass : 0);
    bars->less("cycle / its bytes at read bandwidth: " + name, pass ? std::optional(ms * 1e-3 / (bytes / *bandwidth)) : std::nullopt, 1.3);
    bars->less("host gap in a cycle, us: " + name, row.value("other_ms", 0.0) * 1e3, 50);
    const double speedup = row.value("speedup", 0.0), tau = row.value("tau", 0.0);
    lines->push_back(text("%s: speedup %.2f, tau %.2f, speedup/tau %.2f; the bytes alone allow %.2f", name.c_str(), speedup, tau,
                          tau > 0 ? speedup / tau : 0.0, *target_bytes / bytes));
  }
}

// What drafts gain that look for tokens through a candidate head first, of the same target and drafter.
void candidate_head(const json& inflated, const json& candidate, ordered_json* lines) {
  if (!inflated.is_object() || !candidate.is_object()) return;
  for (const json& row : candidate.value("rows", json::array())) {
    const std::string drafter = row.value("drafter", "none"), tree = row.value("tree", "?");
    if (drafter == "none") continue;
    for (const json& full : inflated.value("rows", json::array())) {
      if (full.value("drafter", "none") != drafter || full.value("tree", "?") != tree) continue;
      const auto ours = number(row, "tokens_per_second"), theirs = number(full, "tokens_per_second");
      if (!ours || !theirs || *theirs <= 0) continue;
      lines->push_back(text("%s, %s, with a candidate head: tau %.2f (%.2f with the full one), draft %.2f ms a cycle (%.2f), %.2f x the tokens a second",
                            drafter.substr(drafter.rfind('/') + 1).c_str(), tree.c_str(), row.value("tau", 0.0), full.value("tau", 0.0),
                            row.value("draft_ms", 0.0), full.value("draft_ms", 0.0), *ours / *theirs));
    }
  }
}

}  // namespace

ordered_json make_report(const json& results) {
  Bars bars;
  ordered_json lines = ordered_json::array();
  const json bench = results.value("bench", json::object()), inflated = results.value("inflated", json());
  decode(bench, results.value("torch", json()), &bars, &lines);
  eagle_level(bench, &bars);
  cycles(inflated, bench, &bars, &lines);
  candidate_head(inflated, results.value("candidate", json()), &lines);
  return {{"bars", bars.take()}, {"lines", std::move(lines)}};
}

std::string report_table(const json& results, const json& report) {
  std::string out = "# On a GPU: " + results.value("device", std::string("unknown")) + ", " + results.value("date", std::string("undated")) + "\n\n";
  for (const json& c : results.value("checks", json::array()))
    out += "- " + c.value("name", std::string("?")) + ": " + c.value("state", std::string("?")) + "\n";
  out += "\n| bar | measured | wanted | holds |\n|---|---|---|---|\n";
  for (const json& b : report["bars"]) {
    const bool known = b["measured"].is_number();
    out += "| " + b["name"].get<std::string>() + " | " + (known ? text("%.3g", b["measured"].get<double>()) : "not measured") + " | " +
           (b["better"] == "less" ? "<= " : ">= ") + text("%.3g", b["limit"].get<double>()) + " | " +
           (known ? (b["holds"].get<bool>() ? "yes" : "**no**") : "?") + " |\n";
  }
  out += "\n";
  for (const json& line : report["lines"]) out += line.get<std::string>() + "\n\n";
  for (const json& target : results.value("bench", json::object()).value("targets", json::array())) {
    out += "| " + target.value("dtype", std::string("?")) + text(", context %d", target.value("context", 0)) +
           " | us | of bandwidth | submit us |\n|---|---|---|---|\n";
    for (const json& p : target.value("passes", json::array()))
      out += text("| %d rows | %.1f | %.1f %% | %.1f |\n", p["rows"].get<int>(), p["us"].get<double>(), 100 * p["of_bandwidth"].get<double>(),
                  p["submit_us"].get<double>());
    out += "\n";
    const json ways = target.value("ways", json::array());
    if (ways.empty()) continue;
    out += "| other ways | rows | us | of bandwidth |\n|---|---|---|---|\n";
    for (const json& p : ways)
      out += text("| %s | %d | %.1f | %.1f %% |\n", p["way"].get<std::string>().c_str(), p["rows"].get<int>(), p["us"].get<double>(),
                  100 * p["of_bandwidth"].get<double>());
    out += "\n";
  }
  return out;
}

}  // namespace aerie::gpu_bench
