package aerie

/*
#include "callbacks.h"
*/
import "C"

import (
	"context"
	"unsafe"
)

// FinalHidden is the tap of the hidden state after the final norm; others are layers, whose input is taken.
const FinalHidden int32 = -1

// Evaluation is a text as the target sees it; rows are those of a session, bit for bit.
type Evaluation struct {
	Features []float32 // [tokens][taps * HiddenSize]
	Logits   []float32 // [tokens][VocabSize]; nil: not asked for
}

// Evaluate runs the target over a text from its beginning, for training and analysis. It takes KV memory for the
// tokens while it runs.
func (m *Model) Evaluate(ctx context.Context, tokens, taps []int32, logits bool) (*Evaluation, error) {
	info, err := m.Info()
	if err != nil {
		return nil, err
	}
	p, err := m.object.hold()
	if err != nil {
		return nil, err
	}
	defer m.object.letGo()
	var out Evaluation
	if n := len(tokens) * len(taps) * info.HiddenSize; n > 0 {
		out.Features = make([]float32, n)
	}
	if n := len(tokens) * info.VocabSize; logits && n > 0 {
		out.Logits = make([]float32, n)
	}
	watched := &loading{ctx: ctx}
	err = watched.run(func(handle C.uintptr_t, e *C.aerie_error) C.int32_t {
		return C.aerie_go_evaluate(p, (*C.int32_t)(address(tokens)), C.size_t(len(tokens)), (*C.int32_t)(address(taps)),
			int32Of(len(taps)), (*C.float)(address(out.Features)), (*C.float)(address(out.Logits)), handle, e)
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

func address[T any](values []T) unsafe.Pointer {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Pointer(&values[0])
}
