package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// LogLevel is how much a log message matters.
type LogLevel int32

const (
	LogError LogLevel = iota
	LogWarning
	LogInfo
	LogDebug
)

// RuntimeOptions are how a Runtime is made; the zero value is fine.
type RuntimeOptions struct {
	Threads int // 0: one for each physical core this process may use
	// Device is "cpu" (""), "cpu:AVX2" or another instruction set, which is one text on all machines that have it, "cuda" or
	// "cuda:N".
	Device string
	// Log gets what the library has to say, on a goroutine of its own that whoever noticed waits for; it must not call
	// back into this package.
	Log func(level LogLevel, message string)
	// Native are C functions to allocate and to compute with; none: the library's own.
	Native NativeHooks
}

// Runtime is a device, its threads, and the drafter plugins that were loaded.
type Runtime struct {
	object object[*C.aerie_runtime]
}

// NewRuntime makes a runtime; options may be nil.
func NewRuntime(options *RuntimeOptions) (*Runtime, error) {
	if options == nil {
		options = &RuntimeOptions{}
	}
	if err := noNUL("device", options.Device); err != nil {
		return nil, err
	}
	var memory arena
	defer memory.free()
	var o C.aerie_runtime_options
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.threads = int32Of(options.Threads)
	o.device = memory.string(options.Device)
	options.Native.fill(&o)
	hooks := newShared(func() {})
	if options.Log != nil {
		handle := cgo.NewHandle(options.Log)
		hooks.free = handle.Delete
		C.aerie_go_set_log(&o, C.uintptr_t(handle))
	}
	var p *C.aerie_runtime
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_runtime_create(&o, &p, e) }); err != nil {
		hooks.drop()
		return nil, err
	}
	r := &Runtime{}
	r.object.open(p, func(p *C.aerie_runtime) { C.aerie_runtime_release(p) }, hooks)
	runtime.SetFinalizer(r, (*Runtime).Close)
	return r, nil
}

// Close gives the runtime back. Models that were opened on it go on.
func (r *Runtime) Close() error {
	r.object.close(nil)
	return nil
}

// Description is like "cpu AVX3_DL, 2 threads"; "" when closed.
func (r *Runtime) Description() string {
	p, err := r.object.hold()
	if err != nil {
		return ""
	}
	defer r.object.letGo()
	return C.GoString(C.aerie_runtime_description(p))
}

// LoadPlugin loads one drafter plugin from an absolute path; it stays loaded until the process ends.
func (r *Runtime) LoadPlugin(path string) error {
	if err := noNUL("path", path); err != nil {
		return err
	}
	p, err := r.object.hold()
	if err != nil {
		return err
	}
	defer r.object.letGo()
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	return check(func(e *C.aerie_error) C.int32_t { return C.aerie_runtime_load_plugin(p, c, e) })
}

// LoadPlugins loads every plugin in an absolute directory; "": the drafters installed with the library.
func (r *Runtime) LoadPlugins(directory string) error {
	if err := noNUL("directory", directory); err != nil {
		return err
	}
	p, err := r.object.hold()
	if err != nil {
		return err
	}
	defer r.object.letGo()
	var memory arena
	defer memory.free()
	c := memory.string(directory)
	return check(func(e *C.aerie_error) C.int32_t { return C.aerie_runtime_load_plugin_directory(p, c, e) })
}

// PluginInfo says what a loaded drafter plugin is.
type PluginInfo struct {
	ID, Title, Version, Path string
	Flags                    uint32 // AERIE_DRAFTER_* of aerie/drafter.h
}

// Plugins lists what is loaded.
func (r *Runtime) Plugins() ([]PluginInfo, error) {
	p, err := r.object.hold()
	if err != nil {
		return nil, err
	}
	defer r.object.letGo()
	var all []PluginInfo
	for i := C.uint32_t(0); ; i++ {
		var info C.aerie_plugin_info
		info.struct_size = C.uint32_t(unsafe.Sizeof(info))
		if C.aerie_runtime_plugin_info(p, i, &info, nil) != C.AERIE_OK { // only ever: past the last
			return all, nil
		}
		all = append(all, PluginInfo{ID: C.GoString(info.id), Title: C.GoString(info.title),
			Version: C.GoString(info.version), Path: C.GoString(info.path), Flags: uint32(info.flags)})
	}
}
