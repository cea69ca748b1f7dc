// aerie profile: measure, print, keep.
#include <cctype>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common.h"
#include "process.h"

namespace cli {

namespace {

struct ProfileOptions {
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

// What aerie_profile_save would refuse, before minutes are spent on measuring.
void check_table(const std::string& path) {
  check_output(path);
  static constexpr std::string_view kMagic = "aerie-costs ";
  std::string begins(kMagic.size(), '\0');
  std::ifstream file(path_of(path), std::ios::binary);
  file.read(begins.data(), static_cast<std::streamsize>(begins.size()));
  if (file.gcount() > 0 && begins != kMagic) throw Failure(path + ": is there, and no cost table: it is left as it is");
}

// Where the tables go; empty: nowhere. That it cannot be written is found before anything is measured.
std::string output_file(const ProfileOptions& o, const aerie_runtime* runtime, const aerie_model* model) {
  if (!o.output.empty()) return o.output;  // checked
  const std::string path = default_profile(runtime, model, o.model);
  if (path.empty()) return path;
  std::error_code ignored;  // the check says what is wrong
  std::filesystem::create_directories(path_of(path).parent_path(), ignored);
  try {
    check_table(path);
  } catch (const Failure& e) {
    throw Failure(std::string(e.what()) + "; -o names another file");
  }
  return path;
}

int profile(const ProfileOptions& o) {
  if (!o.output.empty()) check_table(o.output);
  const Runtime runtime = open_runtime(o.model);
  const Model model = open_model(runtime.get(), o.model);
  std::vector<Drafter> drafters;
  std::vector<aerie_drafter_handle*> handles;
  for (const std::string& d : o.drafters) {
    drafters.push_back(open_drafter(model.get(), d));
    handles.push_back(drafters.back().get());
  }
  const std::string output = output_file(o, runtime.get(), model.get());
  aerie_profile_options p;
  AERIE_INIT(p);
  p.quick = o.quick;
  p.n_batches = static_cast<int32_t>(o.batches.size());
  p.batches = o.batches.data();
  p.n_contexts = static_cast<int32_t>(o.contexts.size());
  p.contexts = o.contexts.data();
  p.n_drafters = static_cast<int32_t>(handles.size());
  p.drafters = handles.data();
  show_progress(&p, "measuring");
  aerie_profile* raw = nullptr;
  check([&](aerie_error* e) { return aerie_profile_create(&raw, e); });
  const Profile profile(raw);
  check([&](aerie_error* e) { return aerie_profile_measure(raw, model.get(), &p, e); });
  const char* text = nullptr;
  check([&](aerie_error* e) { return aerie_profile_json(raw, &text, nullptr, e); });
  if (o.json) {
    std::printf("%s\n", text);
  } else {
    const auto j = nlohmann::json::parse(text);
    std::printf("%s, %s\n", j["device"].get<std::string>().c_str(), aerie_runtime_description(runtime.get()));
    print("target", j["target"]);
    for (const auto& [name, points] : j["drafters"].items()) print(name.c_str(), points);
  }
  // Last: a file that cannot be written costs the minutes of measuring no more than the file.
  if (!output.empty()) check([&](aerie_error* e) { return aerie_profile_save(raw, output.c_str(), e); });
  if (!o.json && o.output.empty() && !output.empty()) std::printf("kept in %s, where run and bench look for it\n", output.c_str());
  return 0;
}

}  // namespace

// docs/profiling.md. Empty: there is no home to put it in.
std::string default_profile(const aerie_runtime* runtime, const aerie_model* model, const ModelOptions& o) {
  const std::filesystem::path folder = cache_folder();
  if (folder.empty()) return {};
  aerie_model_info info;
  AERIE_INIT(info);
  check([&](aerie_error* e) { return aerie_model_info_get(model, &info, e); });
  std::string name = std::string(info.fingerprint) + "-" + std::to_string(info.weight_bytes) + "-" + o.kv() + "-" + aerie_runtime_description(runtime);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '_';
  return text_of(folder / "aerie" / (name + ".costs"));
}

void attach_profile(const std::string& given, const aerie_runtime* runtime, aerie_model* model, const ModelOptions& o,
                    const std::vector<aerie_drafter_handle*>& drafters) {
  if (given == "none") return;
  const std::string path = given.empty() ? default_profile(runtime, model, o) : given;
  aerie_profile* raw = nullptr;
  if (given.empty()) {  // what is there is used if it fits; if it does not, passes are measured as if it were not
    if (path.empty() || !std::ifstream(path_of(path)).good()) return;
    aerie_error err;
    AERIE_INIT(err);
    const bool loaded = aerie_profile_load(path.c_str(), &raw, &err) == AERIE_OK;
    const Profile owner(raw);
    if (!loaded || aerie_profile_attach(raw, model, &err) != AERIE_OK) {
      std::fprintf(stderr, "aerie: costs not used: %s\n", err.message);
      return;
    }
    for (aerie_drafter_handle* d : drafters) (void)aerie_profile_attach_drafter(raw, d, &err);  // learned from its first passes
    return;
  }
  check([&](aerie_error* e) { return aerie_profile_load(path.c_str(), &raw, e); });
  const Profile profile(raw);
  check([&](aerie_error* e) { return aerie_profile_attach(raw, model, e); });
  for (aerie_drafter_handle* d : drafters) check([&](aerie_error* e) { return aerie_profile_attach_drafter(raw, d, e); });
}

void add_profile(CLI::App& app, std::function<int()>* run) {
  auto o = std::make_shared<ProfileOptions>();
  CLI::App* c = app.add_subcommand("profile", "measure what passes cost on this device, for --profile of run and bench");
  o->model.add_to(*c);
  c->add_option("--drafter", o->drafters, "package or plugin id; may be repeated");
  c->add_option("--batch", o->batches, "sequences in a target pass, comma separated (1)")->delimiter(',')->check(CLI::Range(1, 64));
  c->add_option("--context", o->contexts, "tokens behind each, comma separated (32, 128, ... and the longest)")
      ->delimiter(',')
      ->check(CLI::Range(1, INT_MAX));
  c->add_option("-o,--output", o->output, "file for the tables; default: one in the cache folder, which run and bench look for");
  c->add_flag("--json", o->json, "the tables as one JSON object");
  c->add_flag("--quick", o->quick, "about a second for the target and for each drafter");
  c->callback([o, run] { *run = [o] { return profile(*o); }; });
}

}  // namespace cli
