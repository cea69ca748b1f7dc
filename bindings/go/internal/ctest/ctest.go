// Package ctest does what tests of the binding need done in C, which Go's test files cannot hold.
package ctest

/*
#cgo pkg-config: aerie
#include <aerie/aerie.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// A caller compiled with an older header: its session options end before `tree`, and garbage follows.
static int32_t older(aerie_model *model, const int32_t *prompt, size_t n, uint64_t seed, int32_t *out, int32_t count) {
  aerie_session_options o;
  aerie_session *session = NULL;
  int32_t code, got = 0;
  memset(&o, 0xAB, sizeof o);
  memset(&o, 0, offsetof(aerie_session_options, tree));
  o.struct_size = (uint32_t)offsetof(aerie_session_options, tree);
  AERIE_INIT(o.sampling);
  o.sampling.temperature = 0.7f;
  o.sampling.seed = seed;
  if ((code = aerie_session_create(model, &o, &session, NULL))) return code;
  code = aerie_session_append(session, prompt, n, NULL);
  while (!code && got < count) {
    struct { uint32_t struct_size; int32_t state; const aerie_token *tokens; int32_t n_tokens; uint32_t canary; } r;
    memset(&r, 0, sizeof r);
    r.struct_size = (uint32_t)offsetof(aerie_step_result, finish); // an older result, too
    r.canary = 0xC0FFEE;
    if ((code = aerie_session_step(session, NULL, (aerie_step_result *)(void *)&r, NULL))) break;
    if (r.canary != 0xC0FFEE) code = AERIE_E_INTERNAL;
    for (int32_t i = 0; i < r.n_tokens && got < count; ++i) out[got++] = r.tokens[i].id;
  }
  aerie_session_release(session);
  return code;
}

// A caller compiled with a newer header, which has a further field.
static int32_t newer(aerie_model *model, int32_t field) {
  struct { aerie_session_options o; int32_t field; int32_t pad; } n;
  aerie_session *session = NULL;
  int32_t code;
  memset(&n, 0, sizeof n);
  n.o.struct_size = (uint32_t)sizeof n;
  n.field = field;
  code = aerie_session_create(model, &n.o, &session, NULL);
  aerie_session_release(session);
  return code;
}

void aerieTestForeign(uintptr_t handle);
static void *foreign(void *handle) { aerieTestForeign((uintptr_t)handle); return NULL; }
static int run_foreign(uintptr_t handle) {
  pthread_t thread;
  return pthread_create(&thread, NULL, foreign, (void *)handle) || pthread_join(thread, NULL);
}
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Older generates as a program that was compiled with an older header does.
func Older(model unsafe.Pointer, prompt []int32, seed uint64, count int) ([]int32, int32) {
	out := make([]int32, count)
	code := C.older((*C.aerie_model)(model), (*C.int32_t)(unsafe.Pointer(&prompt[0])), C.size_t(len(prompt)),
		C.uint64_t(seed), (*C.int32_t)(unsafe.Pointer(&out[0])), C.int32_t(count))
	return out, int32(code)
}

// Newer makes a session as a program that was compiled with a newer header does; field is in no header yet.
func Newer(model unsafe.Pointer, field int32) int32 {
	return int32(C.newer((*C.aerie_model)(model), C.int32_t(field)))
}

// OnForeignThread runs f on a thread that C made, and waits.
func OnForeignThread(f func()) bool {
	handle := cgo.NewHandle(f)
	defer handle.Delete()
	return C.run_foreign(C.uintptr_t(handle)) == 0
}
