/* loader LIBRARY MODEL: opens and closes the library 1,000 times, each time with a runtime and its plugins, and must not
 * grow; then generates, and again from an exit handler that was there before the library was, so after anything that the
 * library might have left to run at exit. */
#define _GNU_SOURCE
#include <aerie/aerie.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int32_t (*create_fn)(const aerie_runtime_options *, aerie_runtime **, aerie_error *);
typedef int32_t (*load_fn)(aerie_runtime *, const char *, aerie_error *);
typedef void (*release_fn)(aerie_runtime *);

typedef struct usage {
  long pages, maps, files;
} usage;

static usage measure(void) {
  usage u = {0, 0, 0};
  FILE *f = fopen("/proc/self/statm", "r");
  DIR *d;
  int c;
  if (f && fscanf(f, "%*s %ld", &u.pages) != 1) u.pages = -1;
  if (f) fclose(f);
  f = fopen("/proc/self/maps", "r");
  while (f && (c = getc(f)) != EOF) u.maps += c == '\n';
  if (f) fclose(f);
  d = opendir("/proc/self/fd");
  while (d && readdir(d)) ++u.files;
  if (d) closedir(d);
  return u;
}

static const char *library_path, *model_path;
static void *last; /* the library, open at exit */

#define CALL(type, name) ((type)dlsym(last, name))
typedef int32_t (*open_fn)(aerie_runtime *, const char *, const aerie_model_options *, aerie_model **, aerie_error *);
typedef int32_t (*session_fn)(aerie_model *, const aerie_session_options *, aerie_session **, aerie_error *);
typedef int32_t (*append_fn)(aerie_session *, const int32_t *, size_t, aerie_error *);
typedef void (*release_session_fn)(aerie_session *);
typedef void (*release_model_fn)(aerie_model *);
typedef int32_t (*step_fn)(aerie_session *, const aerie_step_options *, aerie_step_result *, aerie_error *);

static void generate(void) {
  aerie_error err;
  aerie_runtime *runtime;
  aerie_model *model;
  aerie_session *session;
  aerie_step_result r;
  const int32_t prompt[] = {260, 513};
  AERIE_INIT(err);
  AERIE_INIT(r);
  if (CALL(create_fn, "aerie_runtime_create")(NULL, &runtime, &err) ||
      CALL(open_fn, "aerie_model_open")(runtime, model_path, NULL, &model, &err) ||
      CALL(session_fn, "aerie_session_create")(model, NULL, &session, &err) ||
      CALL(append_fn, "aerie_session_append")(session, prompt, 2, &err) ||
      CALL(step_fn, "aerie_session_step")(session, NULL, &r, &err) || r.n_tokens < 1) {
    fprintf(stderr, "generate: %s\n", err.message);
    _exit(1);
  }
  CALL(release_session_fn, "aerie_session_release")(session);
  CALL(release_model_fn, "aerie_model_release")(model);
  CALL(release_fn, "aerie_runtime_release")(runtime);
}

static int cycle(void) {
  aerie_error err;
  aerie_runtime *runtime = NULL;
  void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  AERIE_INIT(err);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (((create_fn)dlsym(library, "aerie_runtime_create"))(NULL, &runtime, &err) ||
      ((load_fn)dlsym(library, "aerie_runtime_load_plugin_directory"))(runtime, NULL, &err)) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  ((release_fn)dlsym(library, "aerie_runtime_release"))(runtime);
  return dlclose(library);
}

int main(int argc, char **argv) {
  usage before, after;
  int i;
  if (argc < 3) return 2;
  library_path = argv[1];
  model_path = argv[2];
  if (atexit(generate)) return 1;
  for (i = 0; i < 100; ++i)
    if (cycle()) _exit(1);
  before = measure();
  for (i = 0; i < 900; ++i)
    if (cycle()) _exit(1);
  after = measure();
  printf("100 cycles: %ld pages, %ld mappings, %ld files; 1000: %ld, %ld, %ld\n", before.pages, before.maps,
         before.files, after.pages, after.maps, after.files);
  if (after.pages > before.pages + 64 || after.maps > before.maps + 2 || after.files > before.files) _exit(1);
  last = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (!last) _exit(1);
  generate();
  return 0;
}
