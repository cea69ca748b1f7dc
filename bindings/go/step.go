package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// Token is one token of the text.
type Token struct {
	ID      int32
	Logprob float32 // log-softmax of the target's raw logits
	Drafted bool    // it had been guessed, by a drafter or because of a grammar
}

// State is what a step came to.
type State int32

const (
	Pending State = C.AERIE_STEP_PENDING // the budget is spent; step again
	Emitted State = C.AERIE_STEP_TOKENS  // tokens came out; step again for more
	Done    State = C.AERIE_STEP_DONE    // tokens may have come out; the text has ended
)

// Finish is why a text has ended.
type Finish int32

const (
	NotFinished      Finish = C.AERIE_FINISH_NONE
	FinishEOS        Finish = C.AERIE_FINISH_EOS
	FinishStopToken  Finish = C.AERIE_FINISH_STOP_TOKEN
	FinishStopString Finish = C.AERIE_FINISH_STOP_STRING
	FinishContext    Finish = C.AERIE_FINISH_CONTEXT
	FinishConstraint Finish = C.AERIE_FINISH_CONSTRAINT // the grammar lets no token come next
)

// StepOptions bound a step; the zero value is one whole cycle.
type StepOptions struct {
	MaxTokens int           // most tokens to emit; 0: whatever one cycle gives
	Budget    time.Duration // 0: no limit; less, as of a frame that is over: the least. At least one slice of work is done. Counted in microseconds
}

func (s StepOptions) c() (o C.aerie_step_options) {
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.max_tokens = int32Of(s.MaxTokens)
	if s.Budget > 0 { // less than a microsecond is not "no limit"
		o.budget_us = C.int64_t((s.Budget-1)/time.Microsecond + 1)
	} else if s.Budget < 0 {
		o.budget_us = 1
	}
	return o
}

// Step is what one step gave.
type Step struct {
	State     State
	Tokens    []Token
	Finish    Finish
	StopBytes int // FinishStopString: bytes at the end of the text, from the stop string on, to cut
}

func newStep(r *C.aerie_step_result) Step {
	s := Step{State: State(r.state), Finish: Finish(r.finish), StopBytes: int(r.stop_bytes)}
	if r.n_tokens > 0 {
		s.Tokens = make([]Token, r.n_tokens)
		for i, t := range unsafe.Slice(r.tokens, int(r.n_tokens)) {
			s.Tokens[i] = Token{ID: int32(t.id), Logprob: float32(t.logprob), Drafted: t.drafted != 0}
		}
	}
	return s
}

// Step does one cycle: draft, verify, commit; or as much of it as the budget allows. When ctx ends first, the error is
// ErrCancelled and also ctx's own; stepping again goes on.
func (s *Session) Step(ctx context.Context, options StepOptions) (step Step, err error) {
	err = s.during(func(p *C.aerie_session) error {
		o := options.c()
		var r C.aerie_step_result
		var this stepping
		err := s.interrupter.run(ctx, sessionCanceller(p), func() error {
			r = C.aerie_step_result{struct_size: C.uint32_t(unsafe.Sizeof(r))}
			err := this.run(func(handle C.uintptr_t, e *C.aerie_error) C.int32_t {
				return C.aerie_go_session_step(p, &o, &r, handle, e)
			})
			s.panicked = this.panicked
			return err
		})
		if err == nil {
			step = newStep(&r)
		}
		return explain(err, s.panicked)
	})
	return step, err
}

// Result is what the session's last step gave, its own or its batch's, error included.
func (s *Session) Result() (step Step, err error) {
	err = s.during(func(p *C.aerie_session) error {
		r := C.aerie_step_result{struct_size: C.uint32_t(unsafe.Sizeof(C.aerie_step_result{}))}
		err := s.interrupter.told(check(func(e *C.aerie_error) C.int32_t { return C.aerie_session_result(p, &r, e) }))
		if err == nil {
			step = newStep(&r)
		}
		return explain(err, s.panicked)
	})
	return step, err
}
