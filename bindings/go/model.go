package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"runtime"
	"runtime/cgo"
	"unsafe"
)

// KVType is how keys and values are kept. Each keeps the promise of one text, its own.
type KVType int32

const (
	KVFloat32  KVType = 0
	KVBFloat16 KVType = 1
	KVInt8     KVType = 2
)

// ModelOptions are how a model is opened; the zero value is fine.
type ModelOptions struct {
	KVPositions int // tokens of keys and values that all sessions share; 0: 4 x the context, from 4096 to 32768
	KVType      KVType
	CheckData   bool // checksum raw tensors too, which reads the whole file
	// Progress is called while loading, on a goroutine of its own that the load waits for.
	Progress func(doneBytes, totalBytes uint64)
	// ForgetPrefixes: texts' keys and values do not stay for later sessions that begin alike.
	ForgetPrefixes bool
	// FastPrefill: on cuda, long prompts are read by cuBLASLt, faster and not bit for bit (docs/cuda.md).
	FastPrefill bool
	// KVFull is asked for room when the KV budget is spent, on the goroutine that steps: it may Close other sessions of
	// the model, or Rewind those that are not in a batch being stepped, and return true to try again. Without it, or at
	// false, the step fails with ErrLimit; nothing is lost. It must not call runtime.Goexit, and so not t.Fatal or
	// t.FailNow of a test, which would end the goroutine that steps in the middle of the library: the program ends with
	// a panic that says so.
	KVFull func(positionsWanted int) bool
}

// Model is a target: immutable and shared by any number of sessions.
type Model struct {
	object object[*C.aerie_model]
}

// OpenModel opens a target package. When ctx ends first, so does the load. options may be nil.
func OpenModel(ctx context.Context, on *Runtime, path string, options *ModelOptions) (*Model, error) {
	if err := noNUL("path", path); err != nil {
		return nil, err
	}
	if options == nil {
		options = &ModelOptions{}
	}
	r, err := on.object.hold()
	if err != nil {
		return nil, err
	}
	defer on.object.letGo()
	var o C.aerie_model_options
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.kv_positions = int32Of(options.KVPositions)
	o.kv_dtype = C.int32_t(options.KVType)
	o.check_data = flag(options.CheckData)
	if options.ForgetPrefixes {
		o.keep_prefixes = -1
	}
	if options.FastPrefill {
		o.prefill = C.AERIE_PREFILL_FAST
	}
	base := on.object.base.keep()
	if options.KVFull != nil {
		below := base
		base = newShared(nil)
		full := cgo.NewHandle(options.KVFull)
		base.free = func() {
			full.Delete()
			below.drop()
		}
		C.aerie_go_set_kv_full(&o, C.uintptr_t(full))
	}
	c := C.CString(path)
	defer C.free(unsafe.Pointer(c))
	var p *C.aerie_model
	load := &loading{ctx: ctx, progress: options.Progress}
	if err := load.run(func(handle C.uintptr_t, e *C.aerie_error) C.int32_t {
		C.aerie_go_set_progress(&o, handle)
		return C.aerie_model_open(r, c, &o, &p, e)
	}); err != nil {
		base.drop()
		return nil, err
	}
	m := &Model{}
	m.object.open(p, func(p *C.aerie_model) { C.aerie_model_release(p) }, base)
	runtime.SetFinalizer(m, (*Model).Close)
	return m, nil
}

// Close gives the model back once its sessions and drafters are closed too.
func (m *Model) Close() error {
	m.object.close(nil)
	return nil
}

// ModelInfo is what a model says about itself.
type ModelInfo struct {
	VocabSize, HiddenSize, Layers, Heads, KVHeads, HeadDim, FFN, MaxContext int
	BOS                                                                     int32 // -1: none
	EOS                                                                     []int32
	Name                                                                    string
	Fingerprint                                                             string // equal for requantised copies
	WeightBytes, KVBytesPerToken                                            uint64
	FastPrefill                                                             bool // as it was opened
}

// Info describes the model.
func (m *Model) Info() (ModelInfo, error) {
	p, err := m.object.hold()
	if err != nil {
		return ModelInfo{}, err
	}
	defer m.object.letGo()
	var i C.aerie_model_info
	i.struct_size = C.uint32_t(unsafe.Sizeof(i))
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_model_info_get(p, &i, e) }); err != nil {
		return ModelInfo{}, err
	}
	return ModelInfo{VocabSize: int(i.vocab_size), HiddenSize: int(i.hidden_size), Layers: int(i.layers),
		Heads: int(i.heads), KVHeads: int(i.kv_heads), HeadDim: int(i.head_dim), FFN: int(i.ffn),
		MaxContext: int(i.max_context), BOS: int32(i.bos_id), EOS: copyInt32s(i.eos_ids, int(i.n_eos)),
		Name: C.GoString(i.name), Fingerprint: C.GoString(i.fingerprint), WeightBytes: uint64(i.weight_bytes),
		KVBytesPerToken: uint64(i.kv_bytes_per_token), FastPrefill: i.prefill == C.AERIE_PREFILL_FAST}, nil
}

// Blob gives a byte blob of the package ("tokenizer", "chat_template"), nil when it has none.
func (m *Model) Blob(name string) ([]byte, error) {
	if err := noNUL("name", name); err != nil {
		return nil, err
	}
	p, err := m.object.hold()
	if err != nil {
		return nil, err
	}
	defer m.object.letGo()
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	var data unsafe.Pointer
	var size C.size_t
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_model_blob(p, c, &data, &size, e) }); err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(data), int(size))...), nil
}

func copyInt32s(p *C.int32_t, n int) []int32 {
	if n == 0 {
		return nil
	}
	return append([]int32(nil), unsafe.Slice((*int32)(p), n)...)
}
