// aerie profile: measure, print, keep.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common.h"

namespace cli {

namespace {

struct Options {
  ModelOptions model;
  std::vector<std::string> drafters;
  std::vector<int32_t> batches, contexts;
  std::string output;
  bool json = false, quick = false;
};

void print(const char* what, const nlohmann::json& points) {
  std::printf("%s\n%8s %8s %6s %10s %22s %8s\n", what, "batch", "context", "rows", "ms", "(min..max)", "samples");
  for (const auto& p : points)
    std::printf("%8d %8d %6d %10.3f %10.3f..%-10.3f %8d%s\n", p["batch"].get<int>(), p["context"].get<int>(), p["rows"].get<int>(),
                p["ms"].get<double>(), p["low"].get<double>(), p["high"].get<double>(), p["samples"].get<int>(),
                p.value("pass", "") == "root" ? "  root" : "");
}

int profile(const Options& o) {
  const Runtime runtime = open_runtime(o.model);
  const Model model = open_model(runtime.get(), o.model);
  std::vector<Drafter> drafters;
  std::vector<aerie_drafter_handle*> handles;
  for (const std::string& d : o.drafters) {
    drafters.push_back(open_drafter(model.get(), d));
    handles.push_back(drafters.back().get());
  }
  aerie_profile_options p;
  AERIE_INIT(p);
  p.quick = o.quick;
  p.n_batches = static_cast<int32_t>(o.batches.size());
  p.batches = o.batches.data();
  p.n_contexts = static_cast<int32_t>(o.contexts.size());
  p.contexts = o.contexts.data();
  p.n_drafters = static_cast<int32_t>(handles.size());
  p.drafters = handles.data();
  if (isatty(2))
    p.progress = [](void*, uint64_t done, uint64_t total) -> int32_t {
      std::fprintf(stderr, "\rmeasuring %3d %%%s", static_cast<int>(total ? done * 100 / total : 100), done >= total ? "\r\033[K" : "");
      return 1;
    };
  aerie_profile* raw = nullptr;
  check([&](aerie_error* e) { return aerie_profile_create(&raw, e); });
  const Profile profile(raw);
  check([&](aerie_error* e) { return aerie_profile_measure(raw, model.get(), &p, e); });
  if (!o.output.empty()) check([&](aerie_error* e) { return aerie_profile_save(raw, o.output.c_str(), e); });
  const char* text = nullptr;
  check([&](aerie_error* e) { return aerie_profile_json(raw, &text, nullptr, e); });
  if (o.json) {
    std::printf("%s\n", text);
    return 0;
  }
  const auto j = nlohmann::json::parse(text);
  std::printf("%s, %s\n", j["device"].get<std::string>().c_str(), aerie_runtime_description(runtime.get()));
  print("target", j["target"]);
  for (const auto& [name, points] : j["drafters"].items()) print(name.c_str(), points);
  return 0;
}

}  // namespace

void attach_profile(const std::string& path, aerie_model* model, const std::vector<aerie_drafter_handle*>& drafters) {
  if (path.empty()) return;
  aerie_profile* raw = nullptr;
  check([&](aerie_error* e) { return aerie_profile_load(path.c_str(), &raw, e); });
  const Profile profile(raw);
  check([&](aerie_error* e) { return aerie_profile_attach(raw, model, e); });
  for (aerie_drafter_handle* d : drafters) check([&](aerie_error* e) { return aerie_profile_attach_drafter(raw, d, e); });
}

void add_profile(CLI::App& app, std::function<int()>* run) {
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("profile", "measure what passes cost on this device, for --profile of run and bench");
  o->model.add_to(*c);
  c->add_option("--drafter", o->drafters, "package or plugin id; may be repeated");
  c->add_option("--batch", o->batches, "sequences in a target pass, comma separated (1)")->delimiter(',')->check(CLI::Range(1, 64));
  c->add_option("--context", o->contexts, "tokens behind each, comma separated (32, 128, ... and the longest)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  c->add_option("-o,--output", o->output, "file for the tables");
  c->add_flag("--json", o->json, "the tables as one JSON object");
  c->add_flag("--quick", o->quick, "about a second for the target and for each drafter");
  c->callback([o, run] { *run = [o] { return profile(*o); }; });
}

}  // namespace cli
