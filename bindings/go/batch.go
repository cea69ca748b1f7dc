package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"runtime"
	"sync"
	"unsafe"
)

// Batch steps sessions of one model together: one pass of the target serves all of them, and each one's text is what
// it is alone. After Step, ask each session for its Result.
type Batch struct {
	object      object[*C.aerie_batch]
	lock        *sync.Mutex // the turn of the batch and of the sessions in it
	turn        turn
	interrupter interrupter
	sessions    map[*Session]struct{} // kept from the finalizer, which would take them out
}

// BatchOptions bound a batch; the zero value does not.
type BatchOptions struct {
	MaxRows int // rows of one target pass; 0: no limit
}

// NewBatch makes an empty batch.
func (m *Model) NewBatch(options BatchOptions) (*Batch, error) {
	model, err := m.object.hold()
	if err != nil {
		return nil, err
	}
	defer m.object.letGo()
	var o C.aerie_batch_options
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.max_rows = int32Of(options.MaxRows)
	var p *C.aerie_batch
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_batch_create(model, &o, &p, e) }); err != nil {
		return nil, err
	}
	b := &Batch{lock: new(sync.Mutex), sessions: map[*Session]struct{}{}}
	b.turn.share(b.lock)
	b.object.open(p, func(p *C.aerie_batch) { C.aerie_batch_release(p) }, m.object.base.keep())
	runtime.SetFinalizer(b, (*Batch).Close)
	return b, nil
}

// Close stops a running step; the sessions go on alone.
func (b *Batch) Close() error {
	b.object.close(func(p *C.aerie_batch) { C.aerie_batch_cancel(p) })
	b.lock.Lock()
	defer b.lock.Unlock()
	for s := range b.sessions {
		s.turn.share(s.alone)
	}
	b.sessions = nil
	return nil
}

func (b *Batch) during(f func(p *C.aerie_batch) error) error {
	p, err := b.object.hold()
	if err != nil {
		return err
	}
	defer b.object.letGo()
	end, err := b.turn.take()
	if err != nil {
		return err
	}
	defer end()
	return f(p)
}

// Add takes a session in; a session is in one batch at most. A cycle that it has begun is given up.
func (b *Batch) Add(s *Session) error {
	return b.during(func(p *C.aerie_batch) error {
		if _, in := b.sessions[s]; in { // its turn is ours already
			return b.call(p, s, func(session *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_batch_add(p, session, e) })
		}
		return s.during(func(session *C.aerie_session) error {
			err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_batch_add(p, session, e) })
			if err == nil {
				b.sessions[s] = struct{}{}
				s.turn.share(b.lock)
			}
			return err
		})
	})
}

// Remove takes a session out; its cycle is given up, nobody else's.
func (b *Batch) Remove(s *Session) error {
	return b.during(func(p *C.aerie_batch) error {
		err := b.call(p, s, func(session *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_batch_remove(p, session, e) })
		if err == nil {
			delete(b.sessions, s)
			s.turn.share(s.alone)
		}
		return err
	})
}

func (b *Batch) call(p *C.aerie_batch, s *Session, f func(*C.aerie_session, *C.aerie_error) C.int32_t) error {
	session, err := s.object.hold()
	if err != nil {
		return err
	}
	defer s.object.letGo()
	return check(func(e *C.aerie_error) C.int32_t { return f(session, e) })
}

// Cancel stops the step that is running, or the next one, as Session.Cancel does.
func (b *Batch) Cancel() {
	p, err := b.object.hold()
	if err != nil {
		return
	}
	defer b.object.letGo()
	b.interrupter.ask(batchCanceller(p))
}

func batchCanceller(p *C.aerie_batch) canceller {
	return canceller{func() { C.aerie_batch_cancel(p) }, func() { C.aerie_batch_clear_cancel(p) }}
}

// ClearCancel forgets a Cancel that no step has taken, as Session.ClearCancel does.
func (b *Batch) ClearCancel() {
	p, err := b.object.hold()
	if err != nil {
		return
	}
	defer b.object.letGo()
	b.interrupter.asked.Store(false)
	C.aerie_batch_clear_cancel(p)
}

// BatchStep counts what one step of a batch came to.
type BatchStep struct {
	Sessions int // in the batch
	Tokens   int // emitted in this step, all sessions together
	Emitting int // sessions with tokens
	Ended    int // sessions whose text has ended, in this step or before
	Failed   int // sessions whose result is an error
}

// Step does one cycle of the sessions that are ready to decode and a chunk of prompt of those that are not, or as much
// of it as the budget allows. A session that fails does not stop the others and stays in.
func (b *Batch) Step(ctx context.Context, options StepOptions) (step BatchStep, err error) {
	err = b.during(func(p *C.aerie_batch) error {
		for s := range b.sessions {
			if s.object.closing.Load() {
				delete(b.sessions, s)
			}
		}
		o := options.c()
		var r C.aerie_batch_result
		var this stepping
		err := b.interrupter.run(ctx, batchCanceller(p), func() error {
			r = C.aerie_batch_result{struct_size: C.uint32_t(unsafe.Sizeof(r))}
			err := this.run(func(handle C.uintptr_t, e *C.aerie_error) C.int32_t {
				return C.aerie_go_batch_step(p, &o, &r, handle, e)
			})
			for s := range b.sessions {
				s.panicked = this.panicked // for their Result
			}
			return err
		})
		if err == nil {
			step = BatchStep{int(r.n_sessions), int(r.n_tokens), int(r.n_emitting), int(r.n_ended), int(r.n_failed)}
		}
		return err
	})
	return step, err
}
