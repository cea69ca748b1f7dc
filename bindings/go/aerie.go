// Package aerie generates a language model's own text several tokens per pass: lossless speculative decoding
// behind a C library, libaerie.
//
//	Runtime ── Model (the target) ── Drafter (a plugin that guesses) ── Session (one text) ── Step
//
// Same seed, same text: drafters, trees, batches and budgets change when tokens come, never which.
//
// # Closing
//
// Every object has a Close, which is the way to give its memory back; closing twice does nothing, and objects may be
// closed in any order, as each holds what it stands on. Finalizers close what was forgotten, at a time of their own.
// A method of a closed object returns ErrClosed.
//
// # Goroutines
//
// Runtimes, models, drafters, tokenizers and grammars serve any number of goroutines. A session, a batch with the sessions in
// it, and a decoder serve one at a time: a second one gets ErrBusy instead of a race. Close and Cancel may come from
// anywhere; they wait for, or stop, the call that is running.
//
// # Finding the library
//
// pkg-config finds it: set PKG_CONFIG_PATH to lib/pkgconfig of the prefix where Aerie is installed.
package aerie

/*
#cgo pkg-config: aerie aerie-text
#include <aerie/aerie.h>
*/
import "C"

import "fmt"

// Version is the version of the library in use, "0.1.0".
func Version() string {
	v := uint32(C.aerie_version())
	return fmt.Sprintf("%d.%d.%d", v>>16, v>>8&0xff, v&0xff)
}

// int32Of keeps a number that does not fit from becoming another one that does: the library refuses what is left.
func int32Of(n int) C.int32_t {
	const most = 1<<31 - 1
	switch {
	case n > most:
		return most
	case n < -most-1:
		return -most - 1
	}
	return C.int32_t(n)
}

func flag(on bool) C.int32_t {
	if on {
		return 1
	}
	return 0
}
