// aerie: convert, inspect, run, bench, verify, profile, plugin check. Exit status 0, 1 (it failed: one line on stderr), 2 (usage).
#include <cstdio>

#include "common.h"

int main(int argc, char** argv) {
  CLI::App app{"Aerie: lossless speculative decoding"};
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) { return std::string("aerie: ") + e.what() + "\n"; });
  std::function<int()> run;
  cli::add_convert(app, &run);
  cli::add_inspect(app, &run);
  cli::add_run(app, &run);
  cli::add_bench(app, &run);
  cli::add_verify(app, &run);
  cli::add_profile(app, &run);
  cli::add_plugin(app, &run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return run();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "aerie: %s\n", e.what());
    return 1;
  }
}
