#include <aerie/aerie.h>
#include <stdlib.h>

int32_t ctest_older(aerie_model *model, const int32_t *prompt, size_t n, int32_t *out, int32_t count);
int32_t ctest_newer(aerie_model *model, const int32_t *prompt, size_t n, int32_t field);
int32_t ctest_no_memory(const char *path, const int32_t *prompt, size_t n, int32_t gives, int32_t *left);
/* A host's allocator and job system, which count. */
typedef struct {
  int32_t gives;  /* pieces of memory, then none */
  int32_t pieces; /* that are out */
  int32_t rounds; /* of jobs */
} ctest_host;
void *ctest_alloc(void *host, size_t bytes, size_t alignment);
void ctest_free(void *host, void *piece);
void ctest_parallel_for(void *host, void (*fn)(void *, int32_t), void *context, int32_t n);
/* A plugin's entry point, as if it were linked. */
void *ctest_plugin_entry(const char *path);
int ctest_run_foreign(uintptr_t handle);
