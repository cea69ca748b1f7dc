package ctest

// #include <stdint.h>
import "C"

import "runtime/cgo"

//export aerieTestForeign
func aerieTestForeign(handle C.uintptr_t) { cgo.Handle(handle).Value().(func())() }
