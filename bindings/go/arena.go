package aerie

/*
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
*/
import "C"

import "unsafe"

// arena is C memory for what option structs point at during one call: C may not be handed a Go pointer inside a struct.
type arena []unsafe.Pointer

func (a *arena) bytes(n uintptr) unsafe.Pointer {
	p := C.malloc(C.size_t(n + 1)) // C.malloc never returns nil
	*a = append(*a, p)
	return p
}

func (a *arena) zeroed(n uintptr) unsafe.Pointer {
	p := a.bytes(n)
	C.memset(p, 0, C.size_t(n))
	return p
}

// string gives NULL for "", which is the default everywhere.
func (a *arena) string(s string) *C.char {
	if s == "" {
		return nil
	}
	p := C.CString(s)
	*a = append(*a, unsafe.Pointer(p))
	return p
}

// cString is a NUL-terminated copy, "" too.
func (a *arena) cString(s string) *C.char {
	p := C.CString(s)
	*a = append(*a, unsafe.Pointer(p))
	return p
}

func (a *arena) int32s(values []int32) *C.int32_t {
	if len(values) == 0 {
		return nil
	}
	p := (*C.int32_t)(a.bytes(uintptr(len(values)) * 4))
	copy(unsafe.Slice((*int32)(p), len(values)), values)
	return p
}

func (a *arena) free() {
	for _, p := range *a {
		C.free(p)
	}
}
