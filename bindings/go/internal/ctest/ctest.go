// Package ctest does what tests of the binding need done in C, which Go's test files cannot hold: callers that were
// compiled with other versions of the header, threads that Go did not make, an allocator that gives nothing.
package ctest

/*
#cgo pkg-config: aerie
#cgo LDFLAGS: -ldl
#include "ctest.h"
*/
import "C"

import (
	"reflect"
	"runtime/cgo"
	"unsafe"
)

// Older generates as a program does that was compiled with an older header; it has its own opinion of struct sizes.
func Older(model unsafe.Pointer, prompt []int32, count int) ([]int32, int32) {
	out := make([]int32, count)
	code := C.ctest_older((*C.aerie_model)(model), (*C.int32_t)(unsafe.Pointer(&prompt[0])), C.size_t(len(prompt)),
		(*C.int32_t)(unsafe.Pointer(&out[0])), C.int32_t(count))
	return out, int32(code)
}

// Newer makes and steps a session as a program does that was compiled with a newer header; field is in no header yet.
func Newer(model unsafe.Pointer, prompt []int32, field int32) int32 {
	return int32(C.ctest_newer((*C.aerie_model)(model), (*C.int32_t)(unsafe.Pointer(&prompt[0])), C.size_t(len(prompt)),
		C.int32_t(field)))
}

// NoMemory opens a model and steps, with memory refused from the gives-th allocation on. left: pieces never freed.
func NoMemory(path string, prompt []int32, gives int) (code int32, left int) {
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	var pieces C.int32_t
	code = int32(C.ctest_no_memory(c, (*C.int32_t)(unsafe.Pointer(&prompt[0])), C.size_t(len(prompt)), C.int32_t(gives), &pieces))
	return code, int(pieces)
}

// OnForeignThread runs f on a thread that C made, and waits.
func OnForeignThread(f func()) bool {
	handle := cgo.NewHandle(f)
	defer handle.Delete()
	return C.ctest_run_foreign(C.uintptr_t(handle)) == 0
}

// Host is an allocator and a job system in C, which count.
type Host struct{ c *C.ctest_host }

// NewHost makes one that gives so many pieces of memory, then none.
func NewHost(gives int) Host {
	h := Host{(*C.ctest_host)(C.calloc(1, C.sizeof_ctest_host))}
	h.c.gives = C.int32_t(gives)
	return h
}

// User is what the hooks are to be called with.
func (h Host) User() unsafe.Pointer { return unsafe.Pointer(h.c) }

// Pieces of memory are out, Rounds of jobs have been run.
func (h Host) Pieces() int { return int(h.c.pieces) }
func (h Host) Rounds() int { return int(h.c.rounds) }

func (h Host) Free() { C.free(unsafe.Pointer(h.c)) }

// Alloc, FreePiece and ParallelFor are its C functions.
var (
	Alloc       = unsafe.Pointer(C.ctest_alloc)
	FreePiece   = unsafe.Pointer(C.ctest_free)
	ParallelFor = unsafe.Pointer(C.ctest_parallel_for)
)

// PluginEntry is the entry point of a plugin's library; nil: it has none.
func PluginEntry(path string) unsafe.Pointer {
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	return C.ctest_plugin_entry(c)
}

// Structs are the C structs that the binding fills and reads, as cgo has them.
func Structs() map[string]reflect.Type {
	return map[string]reflect.Type{
		"aerie_error":            reflect.TypeOf(C.aerie_error{}),
		"aerie_runtime_options":  reflect.TypeOf(C.aerie_runtime_options{}),
		"aerie_plugin_info":      reflect.TypeOf(C.aerie_plugin_info{}),
		"aerie_model_options":    reflect.TypeOf(C.aerie_model_options{}),
		"aerie_model_info":       reflect.TypeOf(C.aerie_model_info{}),
		"aerie_evaluate_options": reflect.TypeOf(C.aerie_evaluate_options{}),
		"aerie_drafter_options":  reflect.TypeOf(C.aerie_drafter_options{}),
		"aerie_sampling":         reflect.TypeOf(C.aerie_sampling{}),
		"aerie_token_source":     reflect.TypeOf(C.aerie_token_source{}),
		"aerie_tree_options":     reflect.TypeOf(C.aerie_tree_options{}),
		"aerie_fork_options":     reflect.TypeOf(C.aerie_fork_options{}),
		"aerie_session_options":  reflect.TypeOf(C.aerie_session_options{}),
		"aerie_token":            reflect.TypeOf(C.aerie_token{}),
		"aerie_step_options":     reflect.TypeOf(C.aerie_step_options{}),
		"aerie_step_result":      reflect.TypeOf(C.aerie_step_result{}),
		"aerie_statistics":       reflect.TypeOf(C.aerie_statistics{}),
		"aerie_batch_options":    reflect.TypeOf(C.aerie_batch_options{}),
		"aerie_batch_result":     reflect.TypeOf(C.aerie_batch_result{}),
	}
}
