package aerie

/*
#include <aerie/aerie.h>
*/
import "C"

import "unsafe"

// Fork makes a second session with the same text, settings, drafters, stop strings and grammar, in no batch; keys and values
// are shared until one of them writes. stream is the fork's noise stream; 0: one of its own, so that the two go different
// ways at a temperature above 0. An unfinished cycle is discarded, never a committed token.
func (s *Session) Fork(stream uint32) (fork *Session, err error) {
	err = s.during(func(p *C.aerie_session) error {
		o := C.aerie_fork_options{stream: C.uint32_t(stream)}
		o.struct_size = C.uint32_t(unsafe.Sizeof(o))
		var made *C.aerie_session
		err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_session_fork(p, &o, &made, e) })
		if err != nil {
			return err
		}
		fork = newSession(made, s.object.base.keep())
		fork.stops = s.stops
		return nil
	})
	return fork, err
}
