// aerie plugin check: one line a check; status 1 when one failed.
#include "plugin.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "aerie/tools.h"
#include "common.h"

namespace cli {

namespace {

using plugin::Finding;

struct Report {
  int checks = 0, failures = 0;
  // False: what builds on it would only fail again.
  bool add(const std::string& name, const Finding& f) {
    const char* mark = f.kind == Finding::ok ? "ok" : f.kind == Finding::note ? "note" : f.kind == Finding::skipped ? "skip" : "FAIL";
    std::string words = f.words;  // the plugin's may be in it: nothing that a terminal would obey
    std::replace_if(words.begin(), words.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
    std::printf("%-5s %-28s %s\n", mark, name.c_str(), words.c_str());
    std::fflush(stdout);
    checks += f.kind != Finding::skipped;
    failures += f.kind == Finding::failed;
    return f.kind != Finding::failed;
  }
};

// The plugin id in a drafter package; empty: a target, or none.
std::string plugin_of(const std::string& package) {
  if (package.empty()) return {};
  char* text = nullptr;
  check([&](aerie_error* e) { return aerie_inspect(package.c_str(), AERIE_INSPECT_JSON, &text, e); });
  const std::string json = text;
  aerie_string_free(text);
  return nlohmann::json::parse(json).value("plugin", "");
}

void check_kind(const plugin::Setting& s, const plugin::Kind& k, const std::string& packaged, Report* report) {
  const auto in_child = [&](auto f, const auto&... arguments) { return plugin::in_child([&] { return f(arguments...); }, 3 * s.seconds); };
  const auto name = [&](const char* what) { return k.id + ": " + what; };
  report->add(name("create"), in_child(plugin::check_create, s.plugin, k.id));
  const bool needs_package = !(k.flags & AERIE_DRAFTER_NO_PACKAGE);
  if ((k.flags & AERIE_DRAFTER_HOST_TOKENS) && !needs_package) {
    if (!report->add(name("proposals"), in_child(plugin::check_proposals, s.plugin, k.id, s.seconds))) return;
  }
  if (s.model.empty() || (needs_package && s.package.empty())) {
    report->add(name("text"), {Finding::skipped, s.model.empty() ? "needs --model" : "needs its package: --drafter"});
    return;
  }
  if (needs_package && !packaged.empty() && packaged != k.id) {
    report->add(name("text"), {Finding::skipped, "the package is for " + packaged});
    return;
  }
  plugin::Setting own = s;
  if (!needs_package) own.package.clear();
  if (!report->add(name("open"), in_child(plugin::check_open, own, k.id))) return;
  if (!report->add(name("text"), in_child(plugin::check_text, own, k.id))) return;
  report->add(name("batch"), in_child(plugin::check_batch, own, k.id));
  report->add(name("threads"), in_child(plugin::check_threads, own, k.id));
  report->add(name("sequences"), in_child(plugin::check_sequences, own, k.id));
}

int check_plugin(plugin::Setting s) {
  if (!std::filesystem::exists(s.plugin)) throw Failure(s.plugin + ": cannot open: " + std::strerror(ENOENT));
  s.plugin = std::filesystem::absolute(s.plugin).string();
  const std::string packaged = plugin_of(s.package);
  Report report;
  bool packaged_here = packaged.empty();
  if (report.add("table", plugin::in_child([&] { return plugin::check_table(s.plugin); }, 3 * s.seconds))) {
    const Finding described = plugin::in_child([&] { return plugin::check_describe(s.plugin); }, 3 * s.seconds);
    if (report.add("describe", described))
      for (const plugin::Kind& k : plugin::kinds_of(described)) {
        check_kind(s, k, packaged, &report);
        packaged_here = packaged_here || k.id == packaged;
      }
  }
  if (report.failures == 0 && packaged_here) return 0;
  if (report.failures == 0) throw Failure(s.package + ": is for " + packaged + ", which is no drafter of " + s.plugin + ": it was not tried");
  throw Failure(s.plugin + ": " + std::to_string(report.failures) + " of " + std::to_string(report.checks) + " checks failed");
}

}  // namespace

void add_plugin(CLI::App& app, std::function<int()>* run) {
  auto s = std::make_shared<plugin::Setting>();
  CLI::App* group = app.add_subcommand("plugin", "drafter plugins");
  group->require_subcommand(1);
  CLI::App* c = group->add_subcommand("check", "try what a drafter plugin must keep, one line a check");
  c->add_option("plugin", s->plugin, "the shared library")->required();
  c->add_option("--model", s->model, "target package to draft for");
  c->add_option("--drafter", s->package, "the drafter's package");
  c->add_option("--seconds", s->seconds, "for a check: a slow drafter is asked less, and one that takes three times as long hangs (40)")
      ->check(CLI::Range(1, 3600));
  c->callback([s, run] { *run = [s] { return check_plugin(*s); }; });
}

}  // namespace cli
