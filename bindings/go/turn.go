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
// one of a context that ended just after its step is cleared away.
type interrupter struct {
	asked atomic.Bool // Cancel was called, which is meant for the next step too
}

// canceller is what the library offers for a session or a batch.
type canceller struct{ cancel, clear func() }

func (i *interrupter) ask(c canceller) {
	i.asked.Store(true)
	c.cancel()
}

// told takes notice of how a step ended.
func (i *interrupter) told(err error) error {
	if errors.Is(err, ErrCancelled) {
		i.asked.Store(false)
	}
	return err
}

// run runs step, whose turn it is.
func (i *interrupter) run(ctx context.Context, c canceller, step func() error) error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: ErrCancelled, cause: err}
	}
	stop := watch(ctx, c.cancel)
	err := i.told(step())
	if fired := stop(); fired {
		c.clear()
		if i.asked.Load() { // by somebody else, whose cancel was perhaps cleared too
			c.cancel()
		}
	}
	if cause := ctx.Err(); cause != nil && errors.Is(err, ErrCancelled) {
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
