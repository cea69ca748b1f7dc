package aerie

/*
#include <aerie/aerie.h>
*/
import "C"

import (
	"time"
	"unsafe"
)

// Statistics count what a session has done.
type Statistics struct {
	Quarantined              bool   // a drafter is out: it has failed too often, or found no memory or KV too often in this session
	Emitted                  uint64 // tokens generated
	Cycles                   uint64 // verify passes that emitted
	FullCycles               uint64 // of these, not cut short by a limit, stop or end of text
	FullEmitted              uint64 // tokens of the full cycles
	Proposed                 uint64 // nodes the drafter offered
	Verified                 uint64 // nodes that went through a verify pass (root not counted)
	Accepted                 uint64 // of these, emitted
	DrafterFailures          uint64 // steps that fell back to plain decode
	Prefill, Draft           time.Duration
	Verify, Other            time.Duration
	PrefillTokens            uint64
	DraftPasses              uint64
	Tried, Taken             [16]uint64 // by depth: cycles whose walk found children there, and went on to one of them
	ChosenDrafter            int        // of the last cycle: 0 Drafter, 1.. MoreDrafters; -1: none (plain decode)
	ChosenNodes, ChosenDepth int        // nodes it verified, the root not counted, and the depth of the deepest
	PlainCycles              uint64     // cycles that no drafter was asked in
	ChosenCycles             [8]uint64  // cycles that asked drafter 0, 1, ...; the last counts all further ones
	ReusedTokens             uint64     // prompt tokens whose keys and values were there already (not in PrefillTokens)
	ForeseenVerified         uint64     // of Verified: what a grammar forces, or has usually come there, and no drafter had guessed
	ForeseenAccepted         uint64     // of these, emitted
}

// Tau is tokens emitted per full cycle; 0 before the first.
func (s Statistics) Tau() float64 {
	if s.FullCycles == 0 {
		return 0
	}
	return float64(s.FullEmitted) / float64(s.FullCycles)
}

// Statistics of the session so far.
func (s *Session) Statistics() (Statistics, error) {
	var c C.aerie_statistics
	c.struct_size = C.uint32_t(unsafe.Sizeof(c))
	err := s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_session_statistics(p, &c, e) })
	if err != nil {
		return Statistics{}, err
	}
	out := Statistics{
		Quarantined: c.quarantined != 0, Emitted: uint64(c.emitted), Cycles: uint64(c.cycles),
		FullCycles: uint64(c.full_cycles), FullEmitted: uint64(c.full_emitted), Proposed: uint64(c.proposed),
		Verified: uint64(c.verified), Accepted: uint64(c.accepted), DrafterFailures: uint64(c.drafter_failures),
		Prefill: time.Duration(c.prefill_ns), Draft: time.Duration(c.draft_ns), Verify: time.Duration(c.verify_ns),
		Other: time.Duration(c.other_ns), PrefillTokens: uint64(c.prefill_tokens), DraftPasses: uint64(c.draft_passes),
		ReusedTokens: uint64(c.reused_tokens), PlainCycles: uint64(c.plain_cycles),
		ChosenDrafter: int(c.chosen_drafter), ChosenNodes: int(c.chosen_nodes), ChosenDepth: int(c.chosen_depth),
		ForeseenVerified: uint64(c.foreseen_verified), ForeseenAccepted: uint64(c.foreseen_accepted),
	}
	for i := range out.Tried {
		out.Tried[i], out.Taken[i] = uint64(c.tried[i]), uint64(c.taken[i])
	}
	for i := range out.ChosenCycles {
		out.ChosenCycles[i] = uint64(c.chosen_cycles[i])
	}
	return out, nil
}
