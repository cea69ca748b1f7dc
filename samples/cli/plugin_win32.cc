// The checks run in copies of this process (fork), which Windows has not.
#include "common.h"

namespace cli {

void add_plugin(CLI::App& app, std::function<int()>* run) {
  CLI::App* c = app.add_subcommand("plugin", "drafter plugins: are checked on Linux");
  c->allow_extras();
  c->callback([run] { *run = []() -> int { throw Failure("plugin check: it runs on Linux only"); }; });
}

}  // namespace cli
