#include "ctest.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "_cgo_export.h"

/* Greedy plain decode; only the first 16 bytes of the options and of the result are the caller's. */
int32_t ctest_older(aerie_model *model, const int32_t *prompt, size_t n, int32_t *out, int32_t count) {
  aerie_session_options options;
  aerie_session *session = NULL;
  int32_t code, got = 0, i;
  memset(&options, 0xAB, sizeof options);
  memset(&options, 0, 16);
  options.struct_size = 16;
  if ((code = aerie_session_create(model, &options, &session, NULL))) return code;
  code = aerie_session_append(session, prompt, n, NULL);
  while (!code && got < count) {
    aerie_step_result result;
    const unsigned char *bytes = (const unsigned char *)&result;
    const int32_t *ids;
    size_t all = 0;
    memset(&result, 0xAB, sizeof result);
    memset(&result, 0, 16);
    result.struct_size = 16;
    if ((code = aerie_session_step(session, NULL, &result, NULL))) break;
    for (i = 16; i < (int32_t)sizeof result; ++i)
      if (bytes[i] != 0xAB) code = AERIE_E_INTERNAL;
    if (!code) code = aerie_session_tokens(session, &ids, &all, NULL);
    for (got = 0; !code && n + (size_t)got < all && got < count; ++got) out[got] = ids[n + (size_t)got];
  }
  aerie_session_release(session);
  return code;
}

int32_t ctest_newer(aerie_model *model, const int32_t *prompt, size_t n, int32_t field) {
  struct { aerie_session_options now; int32_t tail[16]; } options;
  struct { aerie_step_result now; int32_t tail[16]; } result;
  aerie_session *session = NULL;
  int32_t code, i;
  memset(&options, 0, sizeof options);
  options.now.struct_size = (uint32_t)sizeof options;
  options.tail[15] = field;
  if ((code = aerie_session_create(model, &options.now, &session, NULL))) return code;
  memset(&result, 0xAB, sizeof result);
  result.now.struct_size = (uint32_t)sizeof result;
  if (!(code = aerie_session_append(session, prompt, n, NULL))) code = aerie_session_step(session, NULL, &result.now, NULL);
  for (i = 0; !code && i < 16; ++i)
    if (result.tail[i] != 0) code = AERIE_E_INTERNAL;
  aerie_session_release(session);
  return code;
}

void *ctest_alloc(void *user, size_t bytes, size_t alignment) {
  ctest_host *host = user;
  void *piece = NULL;
  if (__atomic_sub_fetch(&host->gives, 1, __ATOMIC_SEQ_CST) < 0 ||
      posix_memalign(&piece, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes))
    return NULL;
  __atomic_add_fetch(&host->pieces, 1, __ATOMIC_SEQ_CST);
  return piece;
}

void ctest_free(void *user, void *piece) {
  if (piece) __atomic_sub_fetch(&((ctest_host *)user)->pieces, 1, __ATOMIC_SEQ_CST);
  free(piece);
}

void ctest_parallel_for(void *user, void (*fn)(void *, int32_t), void *context, int32_t n) {
  __atomic_add_fetch(&((ctest_host *)user)->rounds, 1, __ATOMIC_SEQ_CST);
  while (n-- > 0) fn(context, n);
}

void *ctest_plugin_entry(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return library ? dlsym(library, "aerie_drafter_plugin_entry") : NULL;
}

int32_t ctest_no_memory(const char *path, const int32_t *prompt, size_t n, int32_t gives, int32_t *left) {
  ctest_host host = {gives, 0, 0};
  aerie_runtime_options options;
  aerie_runtime *runtime = NULL;
  aerie_model *model = NULL;
  aerie_session *session = NULL;
  aerie_step_result result;
  int32_t code;
  AERIE_INIT(options);
  options.threads = 1;
  options.alloc = ctest_alloc;
  options.free = ctest_free;
  options.alloc_user = &host;
  AERIE_INIT(result);
  if (!(code = aerie_runtime_create(&options, &runtime, NULL)) && !(code = aerie_model_open(runtime, path, NULL, &model, NULL)) &&
      !(code = aerie_session_create(model, NULL, &session, NULL)) && !(code = aerie_session_append(session, prompt, n, NULL)))
    code = aerie_session_step(session, NULL, &result, NULL);
  aerie_session_release(session);
  aerie_model_release(model);
  aerie_runtime_release(runtime);
  *left = host.pieces;
  return code;
}

static void *foreign(void *handle) {
  aerieTestForeign((uintptr_t)handle);
  return NULL;
}

int ctest_run_foreign(uintptr_t handle) {
  pthread_t thread;
  return pthread_create(&thread, NULL, foreign, (void *)handle) || pthread_join(thread, NULL);
}

