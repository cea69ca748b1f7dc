package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"runtime/cgo"
	"runtime/debug"
)

// caught turns a panic into a PanicError: deferred in every function that the library calls.
func caught(to *error) {
	if value := recover(); value != nil {
		*to = &PanicError{Value: value, Stack: debug.Stack()}
	}
}

//export aerieGoLog
func aerieGoLog(handle C.uintptr_t, level C.int32_t, message *C.char) {
	var ignored error // nobody to tell: the log itself is what broke
	defer caught(&ignored)
	cgo.Handle(handle).Value().(func(LogLevel, string))(LogLevel(level), C.GoString(message))
}

// loading is a model being opened, or another long call: how far, until when, and what went wrong in Go.
type loading struct {
	ctx      context.Context
	progress func(done, total uint64)
	err      error
}

// run makes the call; the handle is for its progress hook.
func (l *loading) run(call func(handle C.uintptr_t, e *C.aerie_error) C.int32_t) error {
	handle := cgo.NewHandle(l)
	defer handle.Delete()
	err := check(func(e *C.aerie_error) C.int32_t { return call(C.uintptr_t(handle), e) })
	if err != nil && l.err != nil {
		err.(*Error).cause = l.err
	}
	return err
}

//export aerieGoProgress
func aerieGoProgress(handle C.uintptr_t, done, total C.uint64_t) (goOn C.int32_t) {
	l := cgo.Handle(handle).Value().(*loading)
	defer caught(&l.err) // goOn is 0 then
	if l.err = l.ctx.Err(); l.err != nil {
		return 0
	}
	if l.progress != nil {
		l.progress(uint64(done), uint64(total))
	}
	return 1
}

// making is what a model asks for room when its KV budget is spent.
type making struct {
	room func(positions int) bool
	told *shared // where a panic waits for the step that it happened in
}

//export aerieGoKVFull
func aerieGoKVFull(handle C.uintptr_t, positions C.int32_t) (again C.int32_t) {
	m := cgo.Handle(handle).Value().(*making)
	var err error
	defer func() {
		if panicked, ok := err.(*PanicError); ok {
			m.told.panicked.Store(panicked)
		}
	}()
	defer caught(&err)
	if m.room(int(positions)) {
		return 1
	}
	return 0
}
