// aerie plugin check: what a drafter plugin must keep, tried in child processes, since a plugin can crash or hang.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aerie/drafter.h"

namespace cli::plugin {

struct Finding {
  enum Kind : char { ok = 'o', note = 'n', failed = 'f', skipped = 's' };
  Kind kind = ok;
  std::string words;
  std::string handed = {};  // to who asked, not to be printed
};
inline Finding fail(std::string words) { return {Finding::failed, std::move(words)}; }

// Run in a child process. A crash, a hang, an exit, an escaped exception and output of its own are failures.
Finding in_child(const std::function<Finding()>& body, int seconds);

struct Kind {
  std::string id;
  uint32_t flags;
};

// Opens the library and asks for its table, the way any host would. Throws cli::Failure. In a child process alone: what a library
// does when it is loaded, or at exit, is as little to be trusted as the rest.
const aerie_drafter_plugin_table* open_table(const std::string& path);

// The table alone: versions, ids, describe past the last, create with an unknown id and without any service.
Finding check_table(const std::string& path);
Finding check_describe(const std::string& path);  // hands over its kinds
std::vector<Kind> kinds_of(const Finding& described);
Finding check_create(const std::string& path, const std::string& id);

// HOST_TOKENS drafters without a package, called directly: bounds of what they propose, rollback, several sequences. Of one that is
// slow less is asked: about `seconds`.
Finding check_proposals(const std::string& path, const std::string& id, int seconds);

// Any drafter, through the runtime: the text of plain decode, no failure, under all trees, with rewinds, pieces of
// prompt, budgets, batches and two threads.
struct Setting {
  std::string plugin, model, package;  // package: empty: none
  int seconds = 40;                    // a check of a slow drafter takes about so long; one that takes three times that hangs
};
Finding check_open(const Setting& s, const std::string& id);
Finding check_text(const Setting& s, const std::string& id);
Finding check_batch(const Setting& s, const std::string& id);
Finding check_threads(const Setting& s, const std::string& id);
Finding check_sequences(const Setting& s, const std::string& id);

}  // namespace cli::plugin
