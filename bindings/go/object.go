package aerie

import (
	"sync"
	"sync/atomic"
)

// object guards a C pointer: calls that use it hold it, close waits for them, and what comes after gets ErrClosed.
type object[P comparable] struct {
	closing atomic.Bool
	lock    sync.RWMutex
	p       P // the zero value: closed
	free    func(P)
	base    *shared
}

func (o *object[P]) open(p P, free func(P), base *shared) { o.p, o.free, o.base = p, free, base }

// hold gives the pointer and keeps it alive until letGo.
func (o *object[P]) hold() (P, error) {
	var none P
	if o == nil || o.closing.Load() {
		return none, &Error{Code: ErrClosed}
	}
	o.lock.RLock()
	if o.p == none {
		o.lock.RUnlock()
		return none, &Error{Code: ErrClosed}
	}
	return o.p, nil
}

func (o *object[P]) letGo() { o.lock.RUnlock() }

// close lets the pointer go once nobody holds it. interrupt (or nil) hurries whoever does.
func (o *object[P]) close(interrupt func(P)) {
	var none P
	if o == nil || o.closing.Swap(true) {
		return
	}
	if interrupt != nil {
		o.lock.RLock()
		interrupt(o.p)
		o.lock.RUnlock()
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	o.free(o.p)
	o.p = none
	o.base.drop()
}

// shared is what the library calls back into on behalf of several objects; the last of them to go takes it along.
type shared struct {
	users int32
	free  func()
}

func newShared(free func()) *shared { return &shared{users: 1, free: free} }

func (s *shared) keep() *shared {
	atomic.AddInt32(&s.users, 1)
	return s
}

func (s *shared) drop() {
	if atomic.AddInt32(&s.users, -1) == 0 {
		s.free()
	}
}
