// aerie: convert, inspect, run, bench, verify, profile, plugin check. Exit status 0, 1 (it failed: one line on stderr), 2 (usage).
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "common.h"
#include "process.h"

namespace {

std::string version() {
  const uint32_t v = aerie_version();
  return "aerie " + std::to_string(v >> 16) + "." + std::to_string(v >> 8 & 255) + "." + std::to_string(v & 255);
}

// The command that was given, for who wants to know how it is used.
std::string command(const CLI::App* app) {
  std::string words = "aerie";
  for (auto given = app->get_subcommands(); !given.empty(); given = given[0]->get_subcommands()) words += " " + given[0]->get_name();
  return words;
}

std::string what_is_wrong(const CLI::App* app, const CLI::Error& e, const std::string& command) {
  const std::string what = e.what(), prefix = "Could not convert: ";  // "--seed = abc": all that are converted are numbers
  if (what.compare(0, prefix.size(), prefix) == 0) return what.substr(prefix.size()) + ": is no number, or too large a one";
  if (dynamic_cast<const CLI::RequiredError*>(&e)) {  // what was given instead of what is missing says more
    const std::vector<std::string> unknown = app->remaining(true);
    if (!unknown.empty() && unknown[0].starts_with('-')) return "there is no option " + unknown[0];
    if (!unknown.empty() && what.find("subcommand") != std::string::npos) return "there is no command " + unknown[0];
  }
  const size_t extra = what.rfind(": ");  // "... not expected: It was"
  const bool words = dynamic_cast<const CLI::ExtrasError*>(&e) && extra != std::string::npos && what[extra + 2] != '-';
  return words && command == "aerie run" ? what + "; the text to continue goes behind --prompt" : what;
}

// A script's variable that is not set is no number, and no file's name.
void refuse_empty(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (option->get_items_expected_max() > 0 && option->get_name() != "--prompt")
      option->transform([](std::string value) {
        if (value.empty()) throw CLI::ValidationError("its value is empty");
        return value;
      });
  for (CLI::App* sub : app.get_subcommands(std::function<bool(CLI::App*)>{})) refuse_empty(*sub);
}

int failed(const char* why) {
  std::fprintf(stderr, "%saerie: %s\n", isatty(2) ? "\r\033[K" : "", why);  // over what a progress line has left
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  cli::begin_process();
  CLI::App app{"Aerie: lossless speculative decoding", "aerie"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version());
  app.failure_message([](const CLI::App* a, const CLI::Error& e) {
    return "aerie: " + what_is_wrong(a, e, command(a)) + " (" + command(a) + " --help)\n";
  });
  std::function<int()> run;
  cli::add_convert(app, &run);
  cli::add_inspect(app, &run);
  cli::add_run(app, &run);
  cli::add_bench(app, &run);
  cli::add_verify(app, &run);
  cli::add_profile(app, &run);
  cli::add_plugin(app, &run);
  app.footer("Text with a drafter, and how much faster it was:\n"
             "  aerie run --model samples/models/demo.aerie --drafter samples/models/demo-eagle.aerie --prompt \"It was\" --compare\n"
             "aerie COMMAND --help lists a command's options.");
  refuse_empty(app);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (app.exit(e) != 0) return 2;
    run = [] { return 0; };  // help, or the version: said
  }
  int status = 1;
  try {
    status = run();
    cli::flush_output();
  } catch (const std::exception& e) {
    return failed(e.what());
  }
  if (status > cli::kEndedBySignal) {  // the shell is to know that it was the user's wish
    std::signal(status - cli::kEndedBySignal, SIG_DFL);
    std::raise(status - cli::kEndedBySignal);
  }
  return status;
}
