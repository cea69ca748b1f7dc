/* footprint MODEL [DRAFTER]: what this process holds beside the mapped weights, and how long each stage of starting
 * took, as "stage ms KiB" lines. tests/bench/footprint.sh runs it. */
#define _POSIX_C_SOURCE 200809L
#include <aerie/aerie.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Resident KiB of everything but the mapped packages. */
static long resident(void) {
  char line[512];
  long total = 0, kib;
  int weights = 0;
  FILE *f = fopen("/proc/self/smaps", "r");
  while (f && fgets(line, sizeof line, f)) {
    if (sscanf(line, "Rss: %ld", &kib) == 1) total += weights ? 0 : kib;
    else if (line[strspn(line, "0123456789abcdef")] == '-') weights = strstr(line, ".aerie") != NULL;
  }
  if (f) fclose(f);
  return total;
}

static double started;
static void stage(const char *name) {
  const double ms = now_ms() - started;
  printf("%s %.3f %ld\n", name, ms, resident());
  started = now_ms(); /* reading smaps is no part of starting */
}

static aerie_error err;
static void check(int32_t code, const char *what) {
  if (code == AERIE_OK) return;
  fprintf(stderr, "%s: %s\n", what, err.message);
  exit(1);
}

int main(int argc, char **argv) {
  const int32_t prompt[] = {260, 513, 1021, 88, 260, 513, 1021, 88};
  aerie_runtime *runtime;
  aerie_model *model;
  aerie_drafter_handle *drafter = NULL;
  aerie_session *session;
  aerie_session_options options;
  aerie_tree_options tree;
  int tokens = 0;
  if (argc < 2) return 2;
  AERIE_INIT(err);
  AERIE_INIT(options);
  AERIE_INIT(tree);
  tree.policy = AERIE_TREE_EAGLE2; /* `auto` would measure passes first */
  options.tree = &tree;
  options.ignore_eos = 1;
  started = now_ms();
  stage("library");
  check(aerie_runtime_create(NULL, &runtime, &err), "runtime");
  stage("runtime");
  check(aerie_runtime_load_plugin_directory(runtime, NULL, &err), "plugins");
  stage("plugins");
  check(aerie_model_open(runtime, argv[1], NULL, &model, &err), "model");
  stage("model");
  if (argc > 2) {
    aerie_drafter_options d;
    AERIE_INIT(d);
    d.package = argv[2];
    check(aerie_drafter_open(model, &d, &drafter, &err), "drafter");
    options.drafter = drafter;
    stage("drafter");
  }
  check(aerie_session_create(model, &options, &session, &err), "session");
  stage("session");
  check(aerie_session_append(session, prompt, 8, &err), "prompt");
  while (tokens < 256) {
    aerie_step_result r;
    AERIE_INIT(r);
    check(aerie_session_step(session, NULL, &r, &err), "step");
    if (tokens == 0 && r.n_tokens > 0) stage("first_token");
    tokens += r.n_tokens;
  }
  stage("256_tokens");
  aerie_session_release(session);
  aerie_drafter_release(drafter);
  aerie_model_release(model);
  aerie_runtime_release(runtime);
  return 0;
}
