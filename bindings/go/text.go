package aerie

/*
#include <aerie/text.h>
*/
import "C"

import (
	"runtime"
	"sync"
	"unsafe"
)

// Tokenizer turns text into tokens and back; immutable and shared.
type Tokenizer struct {
	object object[*C.aerie_tokenizer]
}

// NewTokenizer reads a package's "tokenizer" blob; Model.Tokenizer is the short way.
func NewTokenizer(blob []byte) (*Tokenizer, error) {
	if len(blob) == 0 {
		return nil, &Error{Code: ErrNotFound, Message: "the tokenizer blob is empty"}
	}
	var p *C.aerie_tokenizer
	err := check(func(e *C.aerie_error) C.int32_t {
		return C.aerie_tokenizer_create(unsafe.Pointer(&blob[0]), C.size_t(len(blob)), &p, e)
	})
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{}
	t.object.open(p, func(p *C.aerie_tokenizer) { C.aerie_tokenizer_release(p) }, newShared(func() {}))
	runtime.SetFinalizer(t, (*Tokenizer).Close)
	return t, nil
}

// Tokenizer of the model's package; ErrNotFound when it has none.
func (m *Model) Tokenizer() (*Tokenizer, error) {
	blob, err := m.Blob("tokenizer")
	if err != nil {
		return nil, err
	}
	return NewTokenizer(blob)
}

// Close gives the tokenizer back; decoders, grammars and sessions with stop strings keep what they need of it.
func (t *Tokenizer) Close() error {
	t.object.close(nil)
	return nil
}

// EncodeOptions are how text becomes tokens.
type EncodeOptions struct {
	NoBOS   bool // no begin-of-text token in front
	Special bool // "<|endoftext|>" in the text is that token
}

// Encode turns text into tokens.
func (t *Tokenizer) Encode(text string, options EncodeOptions) ([]int32, error) {
	p, err := t.object.hold()
	if err != nil {
		return nil, err
	}
	defer t.object.letGo()
	var flags C.uint32_t
	if options.NoBOS {
		flags |= C.AERIE_ENCODE_NO_BOS
	}
	if options.Special {
		flags |= C.AERIE_ENCODE_SPECIAL
	}
	bytes := append([]byte(text), 0)  // not empty, so that it has an address
	ids := make([]int32, len(text)+8) // a token a byte, and a few in front: nearly always enough
	for {
		var n C.size_t
		err := check(func(e *C.aerie_error) C.int32_t {
			return C.aerie_tokenizer_encode(p, (*C.char)(unsafe.Pointer(&bytes[0])), C.size_t(len(text)), flags,
				(*C.int32_t)(unsafe.Pointer(&ids[0])), C.size_t(len(ids)), &n, e)
		})
		if err == nil {
			return ids[:n:n], nil
		}
		if int(n) <= len(ids) {
			return nil, err
		}
		ids = make([]int32, n)
	}
}

// VocabSize is how many tokens there are; 0 when closed.
func (t *Tokenizer) VocabSize() int {
	p, err := t.object.hold()
	if err != nil {
		return 0
	}
	defer t.object.letGo()
	return int(C.aerie_tokenizer_vocab_size(p))
}

// TokenBytes are a token's bytes in running text after the token previous (-1: none); nil: no such token.
func (t *Tokenizer) TokenBytes(token, previous int32) []byte {
	p, err := t.object.hold()
	if err != nil {
		return nil
	}
	defer t.object.letGo()
	var bytes *C.char
	n := C.aerie_tokenizer_token_bytes(p, C.int32_t(token), C.int32_t(previous), &bytes)
	if n < 0 {
		return nil
	}
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(bytes)), int(n))...)
}

// Decoder turns tokens into text without splitting a UTF-8 character.
type Decoder struct {
	object object[*C.aerie_decoder]
	turn   sync.Mutex
}

// NewDecoder makes a decoder, which may outlive the tokenizer.
func (t *Tokenizer) NewDecoder() (*Decoder, error) {
	tokenizer, err := t.object.hold()
	if err != nil {
		return nil, err
	}
	defer t.object.letGo()
	var p *C.aerie_decoder
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_decoder_create(tokenizer, &p, e) }); err != nil {
		return nil, err
	}
	d := &Decoder{}
	d.object.open(p, func(p *C.aerie_decoder) { C.aerie_decoder_release(p) }, newShared(func() {}))
	runtime.SetFinalizer(d, (*Decoder).Close)
	return d, nil
}

// Close gives the decoder back.
func (d *Decoder) Close() error {
	d.object.close(nil)
	return nil
}

// Push adds a token and gives the characters that are complete now, perhaps none.
func (d *Decoder) Push(token int32) (string, error) {
	return d.text(func(p *C.aerie_decoder, text **C.char, size *C.size_t, e *C.aerie_error) C.int32_t {
		return C.aerie_decoder_push(p, C.int32_t(token), text, size, e)
	})
}

// Finish gives what was held back, as U+FFFD; the decoder is then fresh.
func (d *Decoder) Finish() (string, error) {
	return d.text(func(p *C.aerie_decoder, text **C.char, size *C.size_t, e *C.aerie_error) C.int32_t {
		return C.aerie_decoder_finish(p, text, size, e)
	})
}

func (d *Decoder) text(call func(*C.aerie_decoder, **C.char, *C.size_t, *C.aerie_error) C.int32_t) (string, error) {
	p, err := d.object.hold()
	if err != nil {
		return "", err
	}
	defer d.object.letGo()
	if !d.turn.TryLock() {
		return "", &Error{Code: ErrBusy, Message: "in use by another goroutine"}
	}
	defer d.turn.Unlock()
	var text *C.char
	var size C.size_t
	if err := check(func(e *C.aerie_error) C.int32_t { return call(p, &text, &size, e) }); err != nil {
		return "", err
	}
	return C.GoStringN(text, C.int(size)), nil
}
