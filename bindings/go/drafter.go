package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"runtime"
	"unsafe"
)

// DrafterOptions say which drafter to open: a package, a plugin, or both.
type DrafterOptions struct {
	Package     string // path of a drafter package, or of a target used as draft model
	Plugin      string // id of a loaded plugin; "": the one that the package names
	MaxSessions int    // sessions that may use it at once, 1 .. 4096; 0: 8
	// Progress is called while the package is read, on a goroutine of its own that the reading waits for.
	Progress func(doneBytes, totalBytes uint64)
}

// Drafter is a plugin, with its weights, bound to one model.
type Drafter struct {
	object object[*C.aerie_drafter_handle]
}

// OpenDrafter binds a loaded plugin to the model. ErrMismatch: it was made for another one. When ctx ends while the
// package is read, so does the load.
func (m *Model) OpenDrafter(ctx context.Context, options DrafterOptions) (*Drafter, error) {
	if err := noNUL("package", options.Package); err != nil {
		return nil, err
	}
	if err := noNUL("plugin", options.Plugin); err != nil {
		return nil, err
	}
	model, err := m.object.hold()
	if err != nil {
		return nil, err
	}
	defer m.object.letGo()
	var memory arena
	defer memory.free()
	var o C.aerie_drafter_options
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.max_sessions = int32Of(options.MaxSessions)
	o._package = memory.string(options.Package)
	o.plugin = memory.string(options.Plugin)
	var p *C.aerie_drafter_handle
	load := &loading{ctx: ctx, progress: options.Progress}
	if err := load.run(func(handle C.uintptr_t, e *C.aerie_error) C.int32_t {
		C.aerie_go_set_drafter_progress(&o, handle)
		return C.aerie_drafter_open(model, &o, &p, e)
	}); err != nil {
		return nil, err
	}
	d := &Drafter{}
	d.object.open(p, func(p *C.aerie_drafter_handle) { C.aerie_drafter_release(p) }, m.object.base.keep())
	runtime.SetFinalizer(d, (*Drafter).Close)
	return d, nil
}

// Close gives the drafter back once the sessions that use it are closed too.
func (d *Drafter) Close() error {
	d.object.close(nil)
	return nil
}
