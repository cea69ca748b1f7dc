package aerie

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// turn is whose turn it is on a session or a batch: one goroutine's, the others get ErrBusy. The library refuses a
// second thread too, but what it hands out is borrowed until the next call, so the turn must last until it is copied.
// A session in a batch takes the batch's turn.
type turn struct{ lock atomic.Pointer[sync.Mutex] }

func (t *turn) share(lock *sync.Mutex) { t.lock.Store(lock) }

// take gives the function that ends the turn.
func (t *turn) take() (end func(), err error) {
	for {
		lock := t.lock.Load()
		if !lock.TryLock() {
			return nil, &Error{Code: ErrBusy, Message: "in use by another goroutine"}
		}
		if t.lock.Load() == lock { // else it has joined or left a batch meanwhile
			return lock.Unlock, nil
		}
		lock.Unlock()
	}
}

// interrupter ends steps when their context does. The library's cancel stops the running step or else the next one, so
// a context that ends just after a step would hit a later step that has nothing to do with it: that one is run again.
type interrupter struct {
	late  bool        // such a cancel may be waiting
	asked atomic.Bool // Cancel was called, which is meant for the next step too
}

// run runs step, whose turn it is; cancel is the library's.
func (i *interrupter) run(ctx context.Context, cancel func(), step func() error) error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: ErrCancelled, cause: err}
	}
	stop := watch(ctx, cancel)
	err := step()
	if errors.Is(err, ErrCancelled) && i.late && !i.asked.Load() && ctx.Err() == nil {
		err = step()
	}
	i.late = false
	fired := stop()
	if !errors.Is(err, ErrCancelled) {
		i.late = fired
		return err
	}
	i.asked.Store(false)
	if cause := ctx.Err(); cause != nil {
		err.(*Error).cause = cause
	}
	return err
}

// watch calls cancel when ctx ends before stop is called; stop says whether it did.
func watch(ctx context.Context, cancel func()) (stop func() bool) {
	if ctx.Done() == nil {
		return func() bool { return false }
	}
	over, fired := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case <-ctx.Done():
			cancel()
			fired <- true
		case <-over:
			fired <- false
		}
	}()
	return func() bool {
		close(over)
		return <-fired
	}
}
