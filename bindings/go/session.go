package aerie

/*
#include <aerie/aerie.h>
#include <aerie/text.h>
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// Session is one text: its tokens, keys and values, sampler and drafter state.
type Session struct {
	object      object[*C.aerie_session]
	turn        turn
	alone       *sync.Mutex // the turn while in no batch
	interrupter interrupter
	stops       []string    // the stop strings that are set
	panicked    *PanicError // KVFull in the last step, its own or its batch's
}

// NewSession makes a session; options may be nil.
func (m *Model) NewSession(options *SessionOptions) (*Session, error) {
	return m.makeSession(options, func(p *C.aerie_model, o *C.aerie_session_options, out **C.aerie_session, e *C.aerie_error) C.int32_t {
		return C.aerie_session_create(p, o, out, e)
	})
}

func (m *Model) makeSession(options *SessionOptions,
	call func(*C.aerie_model, *C.aerie_session_options, **C.aerie_session, *C.aerie_error) C.int32_t) (*Session, error) {
	if options == nil {
		options = &SessionOptions{}
	}
	model, err := m.object.hold()
	if err != nil {
		return nil, err
	}
	defer m.object.letGo()
	var memory arena
	defer memory.free()
	o, release, err := options.c(&memory)
	defer release()
	if err != nil {
		return nil, err
	}
	var p *C.aerie_session
	if err := check(func(e *C.aerie_error) C.int32_t { return call(model, &o, &p, e) }); err != nil {
		return nil, err
	}
	return newSession(p, m.object.base.keep()), nil
}

func newSession(p *C.aerie_session, base *shared) *Session {
	s := &Session{alone: new(sync.Mutex)}
	s.turn.share(s.alone)
	s.object.open(p, func(p *C.aerie_session) { C.aerie_session_release(p) }, base)
	runtime.SetFinalizer(s, (*Session).Close)
	return s
}

// Close stops a running step, leaves the batch, and gives the session's memory back.
func (s *Session) Close() error {
	s.object.close(func(p *C.aerie_session) { C.aerie_session_cancel(p) })
	return nil
}

// use takes the turn and the pointer for one call.
func (s *Session) use(call func(p *C.aerie_session, e *C.aerie_error) C.int32_t) error {
	return s.during(func(p *C.aerie_session) error {
		return check(func(e *C.aerie_error) C.int32_t { return call(p, e) })
	})
}

func (s *Session) during(f func(p *C.aerie_session) error) error {
	p, err := s.object.hold()
	if err != nil {
		return err
	}
	defer s.object.letGo()
	end, err := s.turn.take()
	if err != nil {
		return err
	}
	defer end()
	return f(p)
}

// Append adds prompt tokens, before generation or after some of it. Any chunking gives the same text.
func (s *Session) Append(tokens ...int32) error {
	if len(tokens) == 0 {
		return nil
	}
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t {
		return C.aerie_session_append(p, (*C.int32_t)(unsafe.Pointer(&tokens[0])), C.size_t(len(tokens)), e)
	})
}

// Rewind keeps the first length tokens; an unfinished cycle is discarded.
func (s *Session) Rewind(length int) error {
	if length < 0 {
		return &Error{Code: ErrInvalidArgument, Message: "length is negative"}
	}
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t {
		return C.aerie_session_rewind(p, C.size_t(length), e)
	})
}

// SetSampling holds from the next token on; an unfinished cycle is discarded.
func (s *Session) SetSampling(sampling Sampling) error {
	var memory arena
	defer memory.free()
	o := sampling.c(&memory)
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_session_set_sampling(p, o, e) })
}

// SetTree holds from the next cycle on; an unfinished one is discarded.
func (s *Session) SetTree(tree Tree) error {
	var memory arena
	defer memory.free()
	o := tree.c(&memory)
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_session_set_tree(p, o, e) })
}

// SetStopStrings sets the texts that end the generation, found across token borders; none clears them.
func (s *Session) SetStopStrings(tokenizer *Tokenizer, texts ...string) error {
	var memory arena
	defer memory.free()
	var list **C.char
	source := C.aerie_token_source{struct_size: C.sizeof_aerie_token_source}
	for _, text := range texts {
		if err := noNUL("stop string", text); err != nil {
			return err
		}
	}
	if len(texts) > 0 {
		t, err := tokenizer.object.hold()
		if err != nil {
			return err
		}
		defer tokenizer.object.letGo()
		if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_tokenizer_source(t, &source, e) }); err != nil {
			return err
		}
		list = (**C.char)(memory.bytes(uintptr(len(texts)) * unsafe.Sizeof(*list)))
		for i := range texts {
			unsafe.Slice(list, len(texts))[i] = memory.cString(texts[i])
		}
	}
	return s.during(func(p *C.aerie_session) error {
		err := check(func(e *C.aerie_error) C.int32_t { // the session holds the tokenizer from then on
			return C.aerie_session_set_stop_strings(p, list, int32Of(len(texts)), &source, e)
		})
		if err == nil {
			s.stops = append([]string(nil), texts...)
		}
		return err
	})
}

// Cancel stops the step that is running, or the next one: it returns ErrCancelled, nothing committed is lost, and
// stepping again goes on. From any goroutine. A context given to Step does the same.
func (s *Session) Cancel() {
	p, err := s.object.hold()
	if err != nil {
		return
	}
	defer s.object.letGo()
	s.interrupter.ask(sessionCanceller(p))
}

func sessionCanceller(p *C.aerie_session) canceller {
	return canceller{func() { C.aerie_session_cancel(p) }, func() { C.aerie_session_clear_cancel(p) }}
}

// ClearCancel forgets a Cancel that no step has taken: one that was meant for a step which has ended by itself meanwhile.
func (s *Session) ClearCancel() {
	p, err := s.object.hold()
	if err != nil {
		return
	}
	defer s.object.letGo()
	s.interrupter.asked.Store(false)
	C.aerie_session_clear_cancel(p)
}

// Tokens are all committed tokens, prompt included.
func (s *Session) Tokens() (tokens []int32, err error) {
	err = s.during(func(p *C.aerie_session) error {
		var data *C.int32_t
		var n C.size_t
		err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_session_tokens(p, &data, &n, e) })
		if err == nil {
			tokens = copyInt32s(data, int(n))
		}
		return err
	})
	return tokens, err
}

func (s *Session) stopStrings() (texts []string) {
	_ = s.during(func(*C.aerie_session) error {
		texts = s.stops
		return nil
	})
	return texts
}
