// A host in C++11, built against an installed prefix: consumer MODEL.aerie [DRAFTER]...
// Every drafter (a package, or a plugin's id) must guess something (`random`, nothing right) and change nothing. Prints the tokens.
#include <aerie/aerie.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#ifdef CONSUMER_PLUGIN  // a drafter of the program's own, linked in
extern "C" const aerie_drafter_plugin_table* CONSUMER_PLUGIN(void);
#endif

namespace {

aerie_error err;

void check(int32_t code) {
  if (code != AERIE_OK) throw std::runtime_error(err.message);
}

std::vector<int32_t> generate(aerie_model* model, const char* drafter) {
  aerie_drafter_handle* handle = nullptr;
  if (drafter) {
    aerie_drafter_options d;
    AERIE_INIT(d);
    (std::ifstream(drafter).good() ? d.package : d.plugin) = drafter;
    check(aerie_drafter_open(model, &d, &handle, &err));
  }
  aerie_session_options o;
  AERIE_INIT(o);
  aerie_tree_options tree;
  AERIE_INIT(tree);
  tree.policy = AERIE_TREE_CHAIN;
  o.tree = &tree;
  o.drafter = handle;
  o.ignore_eos = 1;
  aerie_session* session = nullptr;
  check(aerie_session_create(model, &o, &session, &err));
  const int32_t prompt[] = {260, 513, 1021, 88, 260, 513, 1021, 88, 260, 513};
  check(aerie_session_append(session, prompt, 10, &err));
  std::vector<int32_t> tokens;
  while (tokens.size() < 64) {
    aerie_step_options step;
    aerie_step_result r;
    AERIE_INIT(step);
    AERIE_INIT(r);
    step.max_tokens = 64 - static_cast<int32_t>(tokens.size());
    check(aerie_session_step(session, &step, &r, &err));
    for (int32_t i = 0; i < r.n_tokens; ++i) tokens.push_back(r.tokens[i].id);
  }
  aerie_statistics s;
  AERIE_INIT(s);
  check(aerie_session_statistics(session, &s, &err));
  if (drafter && (s.proposed == 0 || (s.accepted == 0 && std::strcmp(drafter, "random") != 0)))
    throw std::runtime_error(std::string(drafter) + ": guessed nothing right");
  aerie_session_release(session);
  aerie_drafter_release(handle);
  return tokens;
}

}  // namespace

int main(int argc, char** argv) {
  AERIE_INIT(err);
  try {
    aerie_runtime* runtime = nullptr;
    aerie_model* model = nullptr;
    check(aerie_runtime_create(nullptr, &runtime, &err));
    check(aerie_runtime_load_plugin_directory(runtime, nullptr, &err));
#ifdef CONSUMER_PLUGIN
    check(aerie_runtime_add_plugin(runtime, "the program's own", CONSUMER_PLUGIN, &err));
#endif
    check(aerie_model_open(runtime, argv[1], nullptr, &model, &err));
    const std::vector<int32_t> plain = generate(model, nullptr);
    for (int i = 2; i < argc; ++i)
      if (generate(model, argv[i]) != plain) throw std::runtime_error(std::string(argv[i]) + ": changed the text");
    for (const int32_t t : plain) std::printf("%d ", t);
    std::printf("\n");
    aerie_model_release(model);
    aerie_runtime_release(runtime);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
