package aerie

/*
#include <aerie/aerie.h>
*/
import "C"

import (
	"fmt"
	"strings"
	"sync"
	"unsafe"
)

// Code says what kind of failure an Error is. Codes are errors themselves, so that errors.Is(err, aerie.ErrLimit) asks.
type Code int32

const (
	ErrInvalidArgument Code = C.AERIE_E_INVALID_ARGUMENT
	ErrNotFound        Code = C.AERIE_E_NOT_FOUND
	ErrIO              Code = C.AERIE_E_IO
	ErrBadFormat       Code = C.AERIE_E_BAD_FORMAT // a damaged or hostile file
	ErrMismatch        Code = C.AERIE_E_MISMATCH   // things that do not belong together
	ErrUnsupported     Code = C.AERIE_E_UNSUPPORTED
	ErrOutOfMemory     Code = C.AERIE_E_OUT_OF_MEMORY
	ErrCancelled       Code = C.AERIE_E_CANCELLED
	ErrLimit           Code = C.AERIE_E_LIMIT // a stated limit is reached
	ErrPlugin          Code = C.AERIE_E_PLUGIN
	ErrDevice          Code = C.AERIE_E_DEVICE
	ErrBusy            Code = C.AERIE_E_BUSY // in use by another goroutine, or the session by a batch
	ErrInternal        Code = C.AERIE_E_INTERNAL
	ErrClosed          Code = -1 // this package's own: the object was closed before
)

func (c Code) Error() string {
	if c == ErrClosed {
		return "aerie: closed"
	}
	return "aerie: " + C.GoString(C.aerie_code_name(C.int32_t(c)))
}

// Error is a failure of the library: its kind, and what it says about it.
type Error struct {
	Code    Code
	Message string
	cause   error
}

func (e *Error) Error() string {
	switch {
	case e.cause != nil:
		return e.Code.Error() + ": " + e.cause.Error()
	case e.Message == "":
		return e.Code.Error()
	}
	return e.Code.Error() + ": " + e.Message
}

// Is makes errors.Is(err, ErrLimit) and the like work.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap gives what lies behind: the context's error of a cancelled call, the PanicError of a callback.
func (e *Error) Unwrap() error { return e.cause }

// PanicError is a panic in one of the program's callbacks. A panic must not cross the library's frames, so it is
// caught, the call it happened in fails, and this error tells. So does a callback that ends its goroutine, with the
// Value "runtime.Goexit" and no Stack.
type PanicError struct {
	Value any
	Stack []byte
}

func (p *PanicError) Error() string { return fmt.Sprintf("panic in a callback: %v", p.Value) }

// The library fills an error that the caller owns; these are used again.
var cErrors = sync.Pool{New: func() any { return new(C.aerie_error) }}

func check(call func(*C.aerie_error) C.int32_t) error {
	e := cErrors.Get().(*C.aerie_error)
	defer cErrors.Put(e)
	e.struct_size = C.uint32_t(unsafe.Sizeof(*e))
	e.message[0] = 0
	if code := call(e); code != C.AERIE_OK {
		return &Error{Code: Code(code), Message: C.GoString(&e.message[0])}
	}
	return nil
}

// A string for the library ends at its first NUL, so one with a NUL inside would become another.
func noNUL(what, s string) error {
	if strings.IndexByte(s, 0) < 0 {
		return nil
	}
	return &Error{Code: ErrInvalidArgument, Message: what + ": has a NUL byte"}
}
