#include <aerie/aerie.h>
#include <stdlib.h>

int32_t ctest_older(aerie_model *model, const int32_t *prompt, size_t n, int32_t *out, int32_t count);
int32_t ctest_newer(aerie_model *model, const int32_t *prompt, size_t n, int32_t field);
int32_t ctest_no_memory(const char *path, const int32_t *prompt, size_t n, int32_t gives, int32_t *left);
int ctest_run_foreign(uintptr_t handle);
int ctest_thread(void);
