package aerie

import (
	"context"
	"io"
	"strings"
)

// Generation hands out a session's tokens one by one, as bufio.Scanner does lines:
//
//	for g := session.Generate(ctx, 100); g.Next(); { use(g.Token()) }
//
// What a step emits beyond the last token taken stays committed in the session.
type Generation struct {
	session *Session
	ctx     context.Context
	left    int // -1: no limit
	step    Step
	next    int
	err     error
}

// Generate gives up to maxTokens tokens (0: until the text ends). When ctx ends first, Err is its error.
func (s *Session) Generate(ctx context.Context, maxTokens int) *Generation {
	if maxTokens <= 0 {
		maxTokens = -1
	}
	return &Generation{session: s, ctx: ctx, left: maxTokens}
}

// Next goes to the next token; false: there is none, or an error.
func (g *Generation) Next() bool {
	for g.next == len(g.step.Tokens) {
		if g.err != nil || g.left == 0 || g.step.State == Done {
			return false
		}
		options := StepOptions{}
		if g.left > 0 {
			options.MaxTokens = g.left
		}
		g.next = 0
		if g.step, g.err = g.session.Step(g.ctx, options); g.err != nil {
			return false
		}
		if g.left > 0 {
			g.left -= len(g.step.Tokens)
		}
	}
	g.next++
	return true
}

// Token is the one that Next went to.
func (g *Generation) Token() Token { return g.step.Tokens[g.next-1] }

// last says that the text ends with this token.
func (g *Generation) last() bool { return g.step.State == Done && g.next == len(g.step.Tokens) }

// Err is what ended the tokens early, or nil.
func (g *Generation) Err() error { return g.err }

// Finish is why the text has ended; NotFinished: it goes on.
func (g *Generation) Finish() Finish { return g.step.Finish }

// TextReader is a session's text as an io.Reader: whole UTF-8 characters as they come (a Read into too small a buffer
// may split one), without the stop string, io.EOF at the end.
type TextReader struct {
	tokens  *Generation
	decoder *Decoder
	stops   []string
	hold    int    // bytes that may yet turn out to begin a stop string
	text    string // decoded, not yet handed out
	ready   int    // bytes of text that may be
	err     error
}

// Reader reads up to maxTokens tokens (0: until the text ends) as text. Close it.
func (s *Session) Reader(ctx context.Context, tokenizer *Tokenizer, maxTokens int) (*TextReader, error) {
	decoder, err := tokenizer.NewDecoder()
	if err != nil {
		return nil, err
	}
	r := &TextReader{tokens: s.Generate(ctx, maxTokens), decoder: decoder, stops: s.stopStrings()}
	for _, stop := range r.stops {
		if len(stop)-1 > r.hold {
			r.hold = len(stop) - 1
		}
	}
	return r, nil
}

// Read implements io.Reader. It blocks until there is text.
func (r *TextReader) Read(p []byte) (int, error) {
	for r.ready == 0 && r.err == nil {
		r.fill()
	}
	n := copy(p, r.text[:r.ready])
	r.text, r.ready = r.text[n:], r.ready-n
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}

// Close gives the decoder back; the session stays.
func (r *TextReader) Close() error { return r.decoder.Close() }

// Finish is why the text has ended; NotFinished: it goes on.
func (r *TextReader) Finish() Finish { return r.tokens.Finish() }

// fill decodes one token, or ends the text.
func (r *TextReader) fill() {
	var piece string
	more := r.tokens.Next()
	if more {
		piece, r.err = r.decoder.Push(r.tokens.Token().ID)
		r.text += piece
		if r.tokens.last() { // a stop string may lie anywhere in it
			return
		}
		if r.ready = len(r.text) - r.hold; r.ready < 0 {
			r.ready = 0
		}
		for r.ready > 0 && r.ready < len(r.text) && r.text[r.ready]&0xc0 == 0x80 { // not within a character
			r.ready--
		}
		return
	}
	if r.err = r.tokens.Err(); r.err == nil {
		piece, r.err = r.decoder.Finish()
		r.text += piece
		if r.Finish() == FinishStopString {
			r.text = r.text[:stopAt(r.text, r.stops, r.tokens.step.StopBytes)]
		}
		if r.err == nil {
			r.err = io.EOF
		}
	}
	r.ready = len(r.text)
}

// stopAt is where the text ends for its reader: before the first stop string. The library counts the bytes to cut from
// the end of the raw text, but the decoder may have more of them, in U+FFFD for what is no UTF-8, so the place is looked
// for; a stop string that is not here whole began in text that was read before.
func stopAt(text string, stops []string, bytes int) int {
	first := -1
	for _, stop := range stops {
		if i := strings.Index(text, stop); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first < 0 {
		first = len(text) - bytes
	}
	if first < 0 {
		first = 0
	}
	return first
}
