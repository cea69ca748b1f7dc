package aerie

/*
#include <aerie/aerie.h>
*/
import "C"

import "unsafe"

// Sampling is how tokens are drawn; the zero value is greedy. Biases come first, then penalties, the session's grammar,
// temperature, TopK, TopP, MinP and the draw; a drafter changes none of it.
type Sampling struct {
	Temperature float32 // 0: greedy, ties to the lowest id
	TopK        int     // 0: off
	TopP        float32 // 0 or >= 1: off
	MinP        float32 // 0: off
	Seed        uint64
	Stream      uint32 // noise stream: sessions with equal seeds but different streams differ
	// RepetitionPenalty: of each token in the text, prompt included, a logit above 0 is divided by it, any other
	// multiplied; 0 or 1: off.
	RepetitionPenalty float32
	// PresencePenalty is taken from the logit of each token that was generated since the last Append; 0: off.
	PresencePenalty  float32
	FrequencyPenalty float32 // the same, as often as it was generated
	PenaltyWindow    int     // penalties look at this many tokens, the newest; 0: all
	// LogitBias is added to tokens' logits; math.Inf(-1): it never comes.
	LogitBias map[int32]float32
}

// c is in C memory, for what points at it.
func (s Sampling) c(memory *arena) *C.aerie_sampling {
	o := (*C.aerie_sampling)(memory.zeroed(C.sizeof_aerie_sampling))
	o.struct_size = C.sizeof_aerie_sampling
	o.temperature = C.float(s.Temperature)
	o.top_k = int32Of(s.TopK)
	o.top_p = C.float(s.TopP)
	o.min_p = C.float(s.MinP)
	o.seed = C.uint64_t(s.Seed)
	o.stream = C.uint32_t(s.Stream)
	o.repetition_penalty = C.float(s.RepetitionPenalty)
	o.presence_penalty = C.float(s.PresencePenalty)
	o.frequency_penalty = C.float(s.FrequencyPenalty)
	o.penalty_window = int32Of(s.PenaltyWindow)
	if n := len(s.LogitBias); n > 0 {
		o.logit_bias = (*C.aerie_logit_bias)(memory.bytes(uintptr(n) * C.sizeof_aerie_logit_bias))
		o.n_logit_bias = int32Of(n)
		list := unsafe.Slice(o.logit_bias, n)
		i := 0
		for token, bias := range s.LogitBias {
			list[i] = C.aerie_logit_bias{token: C.int32_t(token), bias: C.float(bias)}
			i++
		}
	}
	return o
}

// TreePolicy is which guesses are verified together.
type TreePolicy int32

const (
	TreeDefault  TreePolicy = C.AERIE_TREE_DEFAULT // auto; static under the sampled rule
	TreeChain    TreePolicy = C.AERIE_TREE_CHAIN
	TreeStatic   TreePolicy = C.AERIE_TREE_STATIC
	TreeEagle2   TreePolicy = C.AERIE_TREE_EAGLE2
	TreeBackbone TreePolicy = C.AERIE_TREE_BACKBONE
	TreeCast     TreePolicy = C.AERIE_TREE_CAST
	TreeAuto     TreePolicy = C.AERIE_TREE_AUTO
)

// Tree is the shape of draft trees; aerie.h says what the numbers mean to each policy. Zeros are the defaults.
type Tree struct {
	Policy             TreePolicy
	Nodes, Depth, TopK int
	Paths              [][]int32 // static: rank paths; nil: EAGLE's 25-node tree
	Threshold          float32   // cast
}

func (t Tree) c(memory *arena) *C.aerie_tree_options {
	o := (*C.aerie_tree_options)(memory.zeroed(C.sizeof_aerie_tree_options))
	o.struct_size = C.sizeof_aerie_tree_options
	o.policy = C.int32_t(t.Policy)
	o.nodes, o.depth, o.top_k = int32Of(t.Nodes), int32Of(t.Depth), int32Of(t.TopK)
	o.threshold = C.float(t.Threshold)
	var flat []int32
	for _, path := range t.Paths {
		flat = append(append(flat, path...), -1)
	}
	o.n_paths = int32Of(len(t.Paths))
	o.paths = memory.int32s(flat)
	return o
}

// DraftNoise is what drafters rank their guesses with at a temperature above 0.
type DraftNoise int32

const (
	NoiseShared DraftNoise = C.AERIE_NOISE_SHARED // the very noise that the target will draw with
	NoiseNone   DraftNoise = C.AERIE_NOISE_NONE   // as published
)

// Verify is the rule by which guesses are accepted.
type Verify int32

const (
	VerifyExact   Verify = C.AERIE_VERIFY_EXACT   // same seed, same text, bit for bit
	VerifySampled Verify = C.AERIE_VERIFY_SAMPLED // exact in distribution only
)

// SessionOptions are how a session is made; the zero value decodes greedily without a drafter.
type SessionOptions struct {
	MaxContext int      // 0: the model's
	Drafter    *Drafter // nil: plain decode
	Sampling   Sampling
	Tree       Tree
	DraftNoise DraftNoise
	Verify     Verify
	IgnoreEOS  bool    // the model's end-of-text ids are ordinary tokens
	StopTokens []int32 // further tokens that end the text
	// MoreDrafters, beside Drafter: TreeAuto chooses between all of them for every cycle.
	MoreDrafters []*Drafter
	// NoForesight: what a grammar forces, or has usually come there, is left to the drafter, or to plain decode; to
	// measure what foresight brings. The text is the same.
	NoForesight bool
}

// c fills the C struct. Drafters stay held until release is called.
func (s *SessionOptions) c(memory *arena) (o C.aerie_session_options, release func(), err error) {
	var held []*Drafter
	release = func() {
		for _, d := range held {
			d.object.letGo()
		}
	}
	o.struct_size = C.uint32_t(unsafe.Sizeof(o))
	o.max_context = int32Of(s.MaxContext)
	o.sampling = s.Sampling.c(memory)
	o.tree = s.Tree.c(memory)
	o.draft_noise = C.int32_t(s.DraftNoise)
	o.verify = C.int32_t(s.Verify)
	o.ignore_eos = flag(s.IgnoreEOS)
	o.no_foresight = flag(s.NoForesight)
	o.n_stop_tokens = int32Of(len(s.StopTokens))
	o.stop_tokens = memory.int32s(s.StopTokens)
	if s.Drafter != nil {
		if o.drafter, err = s.Drafter.object.hold(); err != nil {
			return o, release, err
		}
		held = append(held, s.Drafter)
	}
	if n := len(s.MoreDrafters); n > 0 {
		list := (**C.aerie_drafter_handle)(memory.bytes(uintptr(n) * unsafe.Sizeof(o.drafter)))
		for i, d := range s.MoreDrafters {
			p, err := d.object.hold()
			if err != nil {
				return o, release, err
			}
			held = append(held, d)
			unsafe.Slice(list, n)[i] = p
		}
		o.n_more_drafters, o.more_drafters = int32Of(n), list
	}
	return o, release, nil
}
