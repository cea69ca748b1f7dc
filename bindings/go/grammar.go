package aerie

/*
#include <aerie/text.h>
*/
import "C"

import "runtime"

// Grammar is a form that text is to have, for Session.SetGrammar; immutable and shared by any number of sessions.
type Grammar struct {
	object object[*C.aerie_grammar]
}

// JSONLayout is how JSON is laid out. The less it leaves open, the faster the text comes.
type JSONLayout int32

const (
	JSONFree    JSONLayout = C.AERIE_JSON_FREE     // as the model likes: a space, a line break with its indentation, or nothing
	JSONOneLine JSONLayout = C.AERIE_JSON_ONE_LINE // a space behind : and ,
	JSONCompact JSONLayout = C.AERIE_JSON_COMPACT  // no white space
)

// NewGrammar reads GBNF, llama.cpp's notation, whose start is the rule "root". endTokens are allowed where the text is
// complete: ModelInfo.EOS. Without any it ends once nothing can follow (FinishConstraint).
func (t *Tokenizer) NewGrammar(gbnf string, endTokens ...int32) (*Grammar, error) {
	return t.newGrammar("gbnf", gbnf, endTokens, false, JSONFree)
}

// NewJSONGrammar is JSON that a JSON Schema describes; "{}" is any JSON. ErrUnsupported names a keyword that is not known.
// endTokens are those of NewGrammar.
func (t *Tokenizer) NewJSONGrammar(schema string, endTokens ...int32) (*Grammar, error) {
	return t.NewJSONGrammarLayout(schema, JSONFree, endTokens...)
}

// NewJSONGrammarLayout is NewJSONGrammar, laid out in a certain way.
func (t *Tokenizer) NewJSONGrammarLayout(schema string, layout JSONLayout, endTokens ...int32) (*Grammar, error) {
	return t.newGrammar("schema", schema, endTokens, true, layout)
}

func (t *Tokenizer) newGrammar(what, text string, endTokens []int32, json bool, layout JSONLayout) (*Grammar, error) {
	if err := noNUL(what, text); err != nil {
		return nil, err
	}
	tokenizer, err := t.object.hold()
	if err != nil {
		return nil, err
	}
	defer t.object.letGo()
	var memory arena
	defer memory.free()
	o := C.aerie_grammar_options{struct_size: C.sizeof_aerie_grammar_options}
	o.n_end_tokens, o.end_tokens = int32Of(len(endTokens)), memory.int32s(endTokens)
	o.json_layout = C.int32_t(layout)
	c := memory.cString(text)
	var p *C.aerie_grammar
	err = check(func(e *C.aerie_error) C.int32_t {
		if json {
			return C.aerie_grammar_create_json(tokenizer, c, &o, &p, e)
		}
		return C.aerie_grammar_create(tokenizer, c, &o, &p, e)
	})
	if err != nil {
		return nil, err
	}
	g := &Grammar{}
	g.object.open(p, func(p *C.aerie_grammar) { C.aerie_grammar_release(p) }, newShared(func() {}))
	runtime.SetFinalizer(g, (*Grammar).Close)
	return g, nil
}

// Close gives the grammar back; sessions that have it keep it.
func (g *Grammar) Close() error {
	g.object.close(nil)
	return nil
}

// SetGrammar lets only what the grammar allows come, from the next token on; nil: anything. It begins with what is generated
// now, and after every Append anew; a Rewind leads it back. It is not saved with the session. An unfinished cycle is
// discarded. ErrMismatch: it allows nothing to begin with, and the one before stays.
func (s *Session) SetGrammar(grammar *Grammar) error {
	if grammar == nil {
		return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { return C.aerie_session_set_constraint(p, nil, e) })
	}
	g, err := grammar.object.hold()
	if err != nil {
		return err
	}
	defer grammar.object.letGo()
	constraint := C.aerie_constraint{struct_size: C.sizeof_aerie_constraint}
	if err := check(func(e *C.aerie_error) C.int32_t { return C.aerie_grammar_constraint(g, &constraint, e) }); err != nil {
		return err
	}
	return s.use(func(p *C.aerie_session, e *C.aerie_error) C.int32_t { // it holds the grammar from then on
		return C.aerie_session_set_constraint(p, &constraint, e)
	})
}
