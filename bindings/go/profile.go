package aerie

/*
#include <aerie/profile.h>
#include <stdlib.h>
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// Profile is a table of what passes cost here, made by `aerie profile`: with it, the auto tree need not measure first.
// It says nothing about what text comes out. One goroutine at a time.
type Profile struct {
	object object[*C.aerie_profile]
}

// LoadProfile reads a file of `aerie profile`.
func LoadProfile(path string) (*Profile, error) {
	if err := noNUL("path", path); err != nil {
		return nil, err
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	var p *C.aerie_profile
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_profile_load(c, &p, e) }); err != nil {
		return nil, err
	}
	f := &Profile{}
	f.object.open(p, func(p *C.aerie_profile) { C.aerie_profile_release(p) }, newShared(func() {}))
	runtime.SetFinalizer(f, (*Profile).Close)
	return f, nil
}

// Attach makes sessions that are created on this model, and with these drafters, from now on use the costs.
// ErrMismatch: they were measured with another model, device, thread count or version, or know no such drafter.
func (f *Profile) Attach(model *Model, drafters ...*Drafter) error {
	p, err := f.object.hold()
	if err != nil {
		return err
	}
	defer f.object.letGo()
	m, err := model.object.hold()
	if err != nil {
		return err
	}
	defer model.object.letGo()
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_profile_attach(p, m, e) }); err != nil {
		return err
	}
	for _, drafter := range drafters {
		d, err := drafter.object.hold()
		if err != nil {
			return err
		}
		err = check(func(e *C.aerie_error) C.int32_t { return C.aerie_profile_attach_drafter(p, d, e) })
		drafter.object.letGo()
		if err != nil {
			return err
		}
	}
	return nil
}

// Close gives the profile back; what it is attached to keeps the costs.
func (f *Profile) Close() error {
	f.object.close(nil)
	return nil
}
