package aerie

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
)

func never() float32 { return float32(math.Inf(-1)) }

func sampled(t testing.TB, m *Model, d *Drafter, sampling Sampling) *Session {
	t.Helper()
	o := settings(d, 0, 0)
	o.Sampling = sampling
	return start(t, m, o, prompt...)
}

func fails(t testing.TB, err error, code Code, words string) {
	t.Helper()
	e, ok := err.(*Error)
	if !ok || e.Code != code || !strings.Contains(e.Message, words) {
		t.Errorf("%v, want %v and %q", err, code, words)
	}
}

func index(ids []int32, id int32) int {
	for i := range ids {
		if ids[i] == id {
			return i
		}
	}
	return -1
}

func TestLogitBias(t *testing.T) {
	m := openDemo(t)
	plain := theText(t, 0, 0, 64)
	at := 3
	for index(plain, plain[at]) < at {
		at++
	}
	forbids := Sampling{LogitBias: map[int32]float32{plain[at]: never()}}
	text := take(t, sampled(t, m, nil, forbids), 64)
	if index(text, plain[at]) >= 0 {
		t.Error("it came")
	}
	isText(t, "before", text[:at], plain[:at])
	s := sampled(t, m, openEagle(t, m), forbids)
	isText(t, "drafted", take(t, s, 64), text)
	if st, err := s.Statistics(); err != nil || st.Accepted == 0 {
		t.Error("nothing was accepted", err)
	}
	// From now on, and no longer.
	must(t, 0, s.SetSampling(Sampling{LogitBias: map[int32]float32{77: 1000, 78: 1}}))
	isText(t, "insists", take(t, s, 4), []int32{77, 77, 77, 77})
	must(t, 0, s.SetSampling(Sampling{}))
	must(t, 0, s.Rewind(len(prompt)))
	isText(t, "without", take(t, s, 64), plain)
	for _, wrong := range []map[int32]float32{{-1: 1}, {1 << 30: 1}, {0: float32(math.NaN())}} {
		fails(t, s.SetSampling(Sampling{LogitBias: wrong}), ErrInvalidArgument, "logit_bias")
	}
}

func TestPenalties(t *testing.T) {
	m := openDemo(t)
	d := openEagle(t, m)
	texts := [][]int32{theText(t, 0, 0, 64)}
	for _, sampling := range []Sampling{{RepetitionPenalty: 1.3}, {PresencePenalty: 2}, {FrequencyPenalty: 2},
		{RepetitionPenalty: 1.3, PenaltyWindow: 8}} {
		text := take(t, sampled(t, m, nil, sampling), 64)
		for _, other := range texts {
			same := true
			for i := range text {
				same = same && text[i] == other[i]
			}
			if same {
				t.Errorf("%+v changes nothing", sampling)
			}
		}
		isText(t, "drafted", take(t, sampled(t, m, d, sampling), 64), text)
		texts = append(texts, text)
	}
	s := sampled(t, m, nil, Sampling{})
	fails(t, s.SetSampling(Sampling{RepetitionPenalty: -1}), ErrInvalidArgument, "repetition_penalty")
	fails(t, s.SetSampling(Sampling{PresencePenalty: float32(math.NaN())}), ErrInvalidArgument, "presence_penalty")
	fails(t, s.SetSampling(Sampling{FrequencyPenalty: 1e9}), ErrInvalidArgument, "frequency_penalty")
	fails(t, s.SetSampling(Sampling{PenaltyWindow: -1}), ErrInvalidArgument, "penalty_window")
}

const list = `root ::= " " [a-z]+ (", " [a-z]+) (", " [a-z]+) "."`

var isList = regexp.MustCompile(`^ [a-z]+, [a-z]+, [a-z]+\.$`)

// shortWords end soon, and so does a list of them.
func shortWords(t testing.TB, tokenizer *Tokenizer) Sampling {
	t.Helper()
	s := Sampling{Temperature: 0.8, Seed: 5, LogitBias: map[int32]float32{}}
	for _, text := range []string{"a,", "a."} {
		ids, err := tokenizer.Encode(text, EncodeOptions{NoBOS: true})
		s.LogitBias[must(t, ids, err)[len(ids)-1]] = 6
	}
	return s
}

// toItsEnd is all that comes until the text ends, and why.
func toItsEnd(t testing.TB, s *Session) (ids []int32, why Finish) {
	t.Helper()
	for why == NotFinished && len(ids) < 300 {
		step, err := s.Step(ctx, StepOptions{})
		must(t, step, err)
		for _, token := range step.Tokens {
			ids = append(ids, token.ID)
		}
		why = step.Finish
	}
	return ids, why
}

func spell(t testing.TB, tokenizer *Tokenizer, ids []int32) (text string) {
	t.Helper()
	d, err := tokenizer.NewDecoder()
	defer must(t, d, err).Close()
	for _, id := range ids {
		piece, err := d.Push(id)
		text += must(t, piece, err)
	}
	rest, err := d.Finish()
	return text + must(t, rest, err)
}

func isAList(t testing.TB, what, text string) {
	t.Helper()
	if !isList.MatchString(text) {
		t.Errorf("%s: %q", what, text)
	}
}

func newGrammar(t testing.TB, tokenizer *Tokenizer, ends ...int32) *Grammar {
	t.Helper()
	g, err := tokenizer.NewGrammar(list, ends...)
	must(t, g, err)
	t.Cleanup(func() { g.Close() })
	return g
}

func TestGrammar(t *testing.T) {
	m := openDemo(t)
	tokenizer := openTokenizer(t, m)
	g := newGrammar(t, tokenizer)
	sampling := shortWords(t, tokenizer)
	s, drafted := sampled(t, m, nil, sampling), sampled(t, m, openEagle(t, m), sampling)
	must(t, 0, s.SetGrammar(g))
	must(t, 0, drafted.SetGrammar(g))
	text, why := toItsEnd(t, s)
	if why != FinishConstraint {
		t.Error("it ended by", why)
	}
	isAList(t, "a list", spell(t, tokenizer, text))
	same, _ := toItsEnd(t, drafted)
	isText(t, "drafted", same, text)
	// Back in the text, and in a fork of it.
	half := len(text) / 2
	must(t, 0, s.Rewind(len(prompt)+half))
	twin, err := s.Fork(0)
	defer must(t, twin, err).Close()
	rest, _ := toItsEnd(t, s)
	isText(t, "back", rest, text[half:])
	rest, _ = toItsEnd(t, twin)
	isAList(t, "forked", spell(t, tokenizer, append(text[:half:half], rest...)))
	// With the tokens that end the model's texts; then none.
	info, err := m.Info()
	must(t, info, err)
	must(t, 0, s.Rewind(len(prompt)))
	must(t, 0, s.SetGrammar(newGrammar(t, tokenizer, info.EOS...)))
	ended, _ := toItsEnd(t, s)
	isText(t, "with an end", ended[:len(ended)-1], text)
	if index(info.EOS, ended[len(ended)-1]) < 0 {
		t.Error("no end", ended)
	}
	must(t, 0, s.SetGrammar(nil))
	must(t, 0, s.Rewind(len(prompt)))
	must(t, 0, s.SetSampling(Sampling{Temperature: 0.8, Seed: 5}))
	isText(t, "without", take(t, s, 64), theText(t, 0.8, 5, 64))
}

func TestJSONSchema(t *testing.T) {
	m := openDemo(t)
	tokenizer := openTokenizer(t, m)
	const schema = `{"type": "object", "required": ["old", "name"], "additionalProperties": false,
		"properties": {"old": {"type": "boolean"}, "name": {"enum": ["Tom", "Ann"]}}}`
	g, err := tokenizer.NewJSONGrammar(schema)
	defer must(t, g, err).Close()
	var texts [2]string
	for i, d := range []*Drafter{nil, openEagle(t, m)} {
		s := start(t, m, settings(d, 0.8, 5), prompt...)
		must(t, 0, s.SetGrammar(g))
		ids, why := toItsEnd(t, s)
		if why != FinishConstraint {
			t.Error("it ended by", why)
		}
		texts[i] = spell(t, tokenizer, ids)
	}
	var made struct {
		Old  *bool
		Name string
	}
	if err := json.Unmarshal([]byte(texts[0]), &made); err != nil || made.Old == nil || made.Name != "Tom" && made.Name != "Ann" {
		t.Errorf("%q: %v", texts[0], err)
	}
	if texts[0] != texts[1] {
		t.Errorf("%q and %q", texts[0], texts[1])
	}
	line, err := tokenizer.NewJSONGrammarLayout(schema, JSONOneLine)
	defer must(t, line, err).Close()
	compact, err := tokenizer.NewJSONGrammarLayout(schema, JSONCompact)
	defer must(t, compact, err).Close()
	say := func(g *Grammar, d *Drafter, noForesight bool) (string, Statistics) {
		o := settings(d, 0.8, 5)
		o.NoForesight = noForesight
		s := start(t, m, o, prompt...)
		must(t, 0, s.SetGrammar(g))
		ids, _ := toItsEnd(t, s)
		st, err := s.Statistics()
		return spell(t, tokenizer, ids), must(t, st, err)
	}
	first, _ := say(line, nil, false)
	err = json.Unmarshal([]byte(first), &made)
	if want := fmt.Sprintf(`{"old": %t, "name": %q}`, *made.Old, made.Name); err != nil || first != want {
		t.Errorf("%q, want %q: %v", first, want, err)
	}
	for _, d := range []*Drafter{nil, openEagle(t, m)} {
		for _, without := range []bool{false, true} {
			text, st := say(line, d, without)
			if text != first || (st.ForeseenAccepted == 0) != without || st.ForeseenVerified < st.ForeseenAccepted {
				t.Errorf("without foresight: %t: %q, %+v", without, text, st)
			}
		}
	}
	if text, _ := say(compact, nil, false); !strings.HasSuffix(text, "}") || strings.ContainsAny(text, " \n\t") {
		t.Errorf("compact: %q", text)
	}
}

func TestGrammarClosedFirst(t *testing.T) {
	m := openDemo(t)
	tokenizer := openTokenizer(t, m)
	sampling := shortWords(t, tokenizer)
	s, other := sampled(t, m, openEagle(t, m), sampling), sampled(t, m, nil, sampling)
	short, err := m.Tokenizer()
	must(t, short, err)
	g := newGrammar(t, short)
	must(t, 0, s.SetGrammar(g))
	must(t, 0, other.SetGrammar(g))
	must(t, 0, short.Close())
	must(t, 0, g.Close())
	must(t, 0, g.Close())
	if err := s.SetGrammar(g); err == nil || err.(*Error).Code != ErrClosed {
		t.Error(err)
	}
	ids, _ := toItsEnd(t, s)
	isAList(t, "closed", spell(t, tokenizer, ids))
	s.Close()
	ids, _ = toItsEnd(t, other)
	isAList(t, "the other", spell(t, tokenizer, ids))
}

func TestGrammarErrors(t *testing.T) {
	tokenizer := openTokenizer(t, openDemo(t))
	gbnf := func(text string, ends ...int32) error {
		_, err := tokenizer.NewGrammar(text, ends...)
		return err
	}
	schema := func(text string) error {
		_, err := tokenizer.NewJSONGrammar(text)
		return err
	}
	fails(t, gbnf("root ::= \"a\"\nroot2 ::= ("), ErrBadFormat, "2")
	fails(t, gbnf(`root ::= root "a" | "b"`), ErrUnsupported, "root")
	fails(t, gbnf("root ::= \"\x00\""), ErrInvalidArgument, "NUL")
	fails(t, gbnf(list, -1), ErrInvalidArgument, "end_tokens")
	fails(t, schema("{"), ErrBadFormat, "")
	fails(t, schema(`{"frobnicate": 1}`), ErrUnsupported, "frobnicate")
	_, err := tokenizer.NewJSONGrammarLayout("{}", 3)
	fails(t, err, ErrInvalidArgument, "json_layout")
	newGrammar(t, tokenizer)
}
