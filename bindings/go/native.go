package aerie

/*
#include <aerie/aerie.h>
#include <stdlib.h>
*/
import "C"

import "unsafe"

// NativeHooks are the program's own allocator and job system: C functions of the types in aerie.h. They are not Go's: the
// library keeps memory for longer than C may keep memory of Go's, and calls its job system so often, for tasks so short,
// that entering Go would cost more than the work. What the users point at is C memory too, alive until the last
// object of the runtime is closed, after which no hook is called.
type NativeHooks struct {
	Alloc, Free  unsafe.Pointer // aerie_alloc_fn and aerie_free_fn, both or none: keys and values, working memory
	AllocUser    unsafe.Pointer
	ParallelFor  unsafe.Pointer // aerie_parallel_for_fn, in place of the library's threads; not asked with Threads 1
	ParallelUser unsafe.Pointer
}

func (h NativeHooks) fill(o *C.aerie_runtime_options) {
	o.alloc, o.free, o.alloc_user = C.aerie_alloc_fn(h.Alloc), C.aerie_free_fn(h.Free), h.AllocUser
	o.parallel_for, o.parallel_user = C.aerie_parallel_for_fn(h.ParallelFor), h.ParallelUser
}

// AddPlugin registers a drafter plugin that is linked into the program. entry is its C entry point, such as
// unsafe.Pointer(C.aerie_drafter_plugin_entry_mine) (drafter.h, AERIE_DRAFTER_STATIC); name is for errors.
func (r *Runtime) AddPlugin(name string, entry unsafe.Pointer) error {
	if err := noNUL("name", name); err != nil {
		return err
	}
	p, err := r.object.hold()
	if err != nil {
		return err
	}
	defer r.object.letGo()
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return check(func(e *C.aerie_error) C.int32_t {
		return C.aerie_runtime_add_plugin(p, c, C.aerie_plugin_entry_fn(entry), e)
	})
}
