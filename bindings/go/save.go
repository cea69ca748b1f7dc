package aerie

/*
#include <aerie/aerie.h>
#include <stdlib.h>
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Save gives the session's text with what has been computed for it, so that going on after RestoreSession costs no
// reading of the prompt. An unfinished cycle is discarded; a session in a batch may be saved.
func (s *Session) Save() (data []byte, err error) {
	err = s.during(func(p *C.aerie_session) error {
		var size C.size_t
		ask := check(func(e *C.aerie_error) C.int32_t { return C.aerie_session_save(p, nil, 0, &size, e) })
		if ask != nil && !errors.Is(ask, ErrLimit) || size == 0 {
			return ask
		}
		data = make([]byte, size)
		err := check(func(e *C.aerie_error) C.int32_t {
			return C.aerie_session_save(p, unsafe.Pointer(&data[0]), C.size_t(len(data)), &size, e)
		})
		if err == nil {
			data = data[:size] // less, if a drafter has become unusable since
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// SaveFile saves to a file, which appears whole or not at all.
func (s *Session) SaveFile(path string) error {
	if err := noNUL("path", path); err != nil {
		return err
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_session_save_file(p, c, e) })
}

// RestoreSession makes a session from what Save gave. Settings are those of options (nil: the defaults), stop strings
// are to be set again. ErrBadFormat: damaged; ErrMismatch: of another model, device or build.
func (m *Model) RestoreSession(options *SessionOptions, data []byte) (*Session, error) {
	if len(data) == 0 {
		return nil, &Error{Code: ErrBadFormat, Message: "nothing was saved"}
	}
	return m.makeSession(options, func(p *C.aerie_model, o *C.aerie_session_options, out **C.aerie_session, e *C.aerie_error) C.int32_t {
		return C.aerie_session_restore(p, o, unsafe.Pointer(&data[0]), C.size_t(len(data)), out, e)
	})
}

// RestoreSessionFile is RestoreSession from a file.
func (m *Model) RestoreSessionFile(options *SessionOptions, path string) (*Session, error) {
	if err := noNUL("path", path); err != nil {
		return nil, err
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	return m.makeSession(options, func(p *C.aerie_model, o *C.aerie_session_options, out **C.aerie_session, e *C.aerie_error) C.int32_t {
		return C.aerie_session_restore_file(p, o, c, out, e)
	})
}
