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

// try calls into the program. A panic must not cross the library's frames.
func try(f func()) (failed *PanicError) {
	failed = &PanicError{} // what panic(nil) leaves
	defer func() {
		if value := recover(); value != nil {
			failed = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// apart is try on a goroutine of its own. runtime.Goexit, which t.Fatal calls, ends the goroutine it is called on, and
// nothing stops it: on the library's caller it would drop the library's frames with what they hold.
func apart(f func()) *PanicError {
	done := make(chan *PanicError, 1)
	go func() {
		failed := &PanicError{Value: "runtime.Goexit"}
		defer func() { done <- failed }()
		failed = try(f)
	}()
	return <-done
}

//export aerieGoLog
func aerieGoLog(handle C.uintptr_t, level C.int32_t, message *C.char) {
	log := cgo.Handle(handle).Value().(func(LogLevel, string))
	apart(func() { log(LogLevel(level), C.GoString(message)) }) // nobody to tell: the log itself is what broke
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
	if l.err = l.ctx.Err(); l.err != nil {
		return 0
	}
	if l.progress != nil {
		if failed := apart(func() { l.progress(uint64(done), uint64(total)) }); failed != nil {
			l.err = failed
			return 0
		}
	}
	return 1
}

// stepping is a step that is running, to the callbacks in it.
type stepping struct {
	panicked *PanicError // KVFull, the last time it was asked
}

// run makes the call, with the handle that aerieGoKVFull is given in it.
func (s *stepping) run(call func(handle C.uintptr_t, e *C.aerie_error) C.int32_t) error {
	s.panicked = nil
	handle := cgo.NewHandle(s)
	defer handle.Delete()
	return check(func(e *C.aerie_error) C.int32_t { return call(C.uintptr_t(handle), e) })
}

// explain adds the panic of the step that err comes from, if there was one: it is why there is no room.
func explain(err error, panicked *PanicError) error {
	if e, ok := err.(*Error); ok && e.Code == ErrLimit && panicked != nil {
		e.cause = panicked
	}
	return err
}

// aerieGoKVFull asks for room when a model's KV budget is spent. `step` is the running step's handle, or 0.
//
//export aerieGoKVFull
func aerieGoKVFull(handle, step C.uintptr_t, positions C.int32_t) (again C.int32_t) {
	room := cgo.Handle(handle).Value().(func(int) bool)
	returned := false
	defer func() {
		// Not apart: it may call back into the library, which knows it by its thread. So an exit cannot be caught, and a
		// session that is stepped for ever would be worse than an end that says why.
		if !returned {
			go panic("aerie: KVFull has called runtime.Goexit, as t.Fatal and t.FailNow do")
			select {}
		}
	}()
	failed := try(func() { again = flag(room(int(positions))) })
	returned = true
	if step != 0 {
		cgo.Handle(step).Value().(*stepping).panicked = failed
	}
	return again
}
