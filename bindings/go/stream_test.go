package aerie

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestStream(t *testing.T) {
	m := openDemo(t)
	want := theText(t, 0.8, 5, 64)
	s := start(t, m, settings(openEagle(t, m), 0.8, 5), prompt...)
	g := s.Generate(ctx, 64)
	var got []int32
	for len(got) < 20 && g.Next() {
		got = append(got, g.Token().ID)
	}
	isText(t, "left early", got, want[:20])
	tokens, err := s.Tokens()
	committed := len(must(t, tokens, err)) - len(prompt)
	isText(t, "afterwards", take(t, s, 64-committed), want[committed:])
}

func TestReaderByteByByte(t *testing.T) {
	m := openDemo(t)
	tokenizer := openTokenizer(t, m)
	ids, err := tokenizer.Encode("a😀é", EncodeOptions{NoBOS: true})
	must(t, ids, err)
	r, err := start(t, m, nil, prompt...).Reader(ctx, tokenizer, 0)
	defer must(t, r, err).Close()
	r.tokens = &Generation{step: Step{State: Done}} // as if the model had said it
	for _, id := range ids {
		r.tokens.step.Tokens = append(r.tokens.step.Tokens, Token{ID: id})
	}
	var text bytes.Buffer
	for one := make([]byte, 1); err == nil; {
		var n int
		n, err = r.Read(one)
		text.Write(one[:n])
	}
	if text.String() != "a😀é" || err != io.EOF {
		t.Errorf("%q, %v", text.String(), err)
	}
}

func TestStopString(t *testing.T) {
	m := openDemo(t)
	tokenizer := openTokenizer(t, m)
	read := func(stop ...string) (string, Finish) {
		s := start(t, m, settings(nil, 0.8, 5), prompt...)
		defer s.Close()
		if err := s.SetStopStrings(tokenizer, stop...); err != nil {
			t.Fatal(err)
		}
		r, err := s.Reader(ctx, tokenizer, 64)
		defer must(t, r, err).Close()
		text, err := io.ReadAll(r)
		return string(must(t, text, err)), r.Finish()
	}
	whole, finish := read()
	if finish != NotFinished || len(whole) < 60 {
		t.Fatalf("%q, %d", whole, finish)
	}
	for from := 3; from < 50; from += 4 {
		stop := whole[from : from+7]
		want := whole[:strings.Index(whole, stop)]
		if got, finish := read("not in the text", stop); got != want || finish != FinishStopString {
			t.Errorf("stop %q: %q, want %q (finish %d)", stop, got, want, finish)
		}
	}
	s := start(t, m, settings(nil, 0.8, 5), prompt...)
	if err := s.SetStopStrings(tokenizer, ""); !errors.Is(err, ErrInvalidArgument) {
		t.Error("an empty stop string:", err)
	}
	if err := s.SetStopStrings(tokenizer, whole[30:36]); err != nil {
		t.Fatal(err)
	}
	raw := ""
	d, err := tokenizer.NewDecoder()
	defer must(t, d, err).Close()
	g := s.Generate(ctx, 64)
	for g.Next() {
		piece, err := d.Push(g.Token().ID)
		raw += must(t, piece, err)
	}
	if cut := g.step.StopBytes; g.Finish() != FinishStopString || !strings.HasPrefix(raw[len(raw)-cut:], whole[30:36]) {
		t.Errorf("%q, %d bytes to cut", raw, cut)
	}
}

func TestLoadProgress(t *testing.T) {
	var last, total uint64
	m, err := OpenModel(ctx, openRuntime(t), models("demo.aerie"), &ModelOptions{CheckData: true, Progress: func(done, of uint64) {
		if done < last {
			t.Errorf("fell from %d to %d", last, done)
		}
		last, total = done, of
	}})
	must(t, m, err).Close()
	if last == 0 || last != total {
		t.Errorf("ended at %d of %d", last, total)
	}
}

func TestLoadCancel(t *testing.T) {
	r := openRuntime(t)
	soon, cancel := context.WithCancel(ctx)
	calls := 0
	_, err := OpenModel(soon, r, models("demo.aerie"), &ModelOptions{Progress: func(_, _ uint64) { calls++; cancel() }})
	if calls > 1 && !errors.Is(err, ErrCancelled) {
		t.Error("a cancel during the load:", err)
	}
	if _, err := OpenModel(soon, r, models("demo.aerie"), nil); !errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled) {
		t.Error("a context that has ended:", err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	must(t, m, err).Close()
}

func TestDrafterProgress(t *testing.T) {
	m := openDemo(t)
	var last, total uint64
	d, err := m.OpenDrafter(ctx, DrafterOptions{Package: models("demo-eagle.aerie"), Progress: func(done, of uint64) {
		if done < last {
			t.Errorf("fell from %d to %d", last, done)
		}
		last, total = done, of
	}})
	defer must(t, d, err).Close()
	if last == 0 || last != total {
		t.Errorf("ended at %d of %d", last, total)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.OpenDrafter(ended, DrafterOptions{Package: models("demo-eagle.aerie")}); !errors.Is(err, context.Canceled) {
		t.Error("a context that has ended:", err)
	}
	isText(t, "the model works on", take(t, start(t, m, settings(d, 0, 5), prompt...), 16), theText(t, 0, 5, 16))
}

func TestModelInfo(t *testing.T) {
	i, err := openDemo(t).Info()
	if must(t, i, err); i.VocabSize == 0 || i.Name == "" || i.Fingerprint == "" || len(i.EOS) == 0 || i.MaxContext == 0 || i.WeightBytes == 0 {
		t.Errorf("%+v", i)
	}
}

func TestCostsAreReadFromAFile(t *testing.T) {
	path := t.TempDir() + "/costs"
	out, err := exec.Command(built(t, "bin", "aerie"), "profile", "--quick", "--threads", "1", "--model", models("demo.aerie"),
		"--drafter", models("demo-eagle.aerie"), "-o", path).Output()
	must(t, out, err)
	m := openDemo(t)
	d := openEagle(t, m)
	profile, err := LoadProfile(path)
	defer must(t, profile, err).Close()
	if err := profile.Attach(m, d); err != nil {
		t.Fatal(err)
	}
	ngram, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "ngram"})
	defer must(t, ngram, err).Close()
	if err := profile.Attach(m, ngram); !errors.Is(err, ErrMismatch) {
		t.Error("a drafter that was not measured:", err)
	}
	o := settings(d, 0.8, 5)
	o.Tree = Tree{Policy: TreeAuto}
	isText(t, "auto", take(t, start(t, m, o, prompt...), 64), theText(t, 0.8, 5, 64))
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadProfile(path); !errors.Is(err, ErrBadFormat) {
		t.Error(err)
	}
}

func TestAutoChoosesADrafter(t *testing.T) {
	m := openDemo(t)
	ngram, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "ngram"})
	must(t, ngram, err)
	o := settings(openEagle(t, m), 0.8, 5)
	o.MoreDrafters, o.Tree = []*Drafter{ngram}, Tree{Policy: TreeAuto}
	s := start(t, m, o, prompt...)
	ngram.Close()
	isText(t, "auto", take(t, s, 64), theText(t, 0.8, 5, 64))
	st, err := s.Statistics()
	cycles := must(t, st, err).PlainCycles
	for _, n := range st.ChosenCycles {
		cycles += n
	}
	if cycles != st.Cycles || st.ChosenDrafter < -1 || st.ChosenDrafter > 1 {
		t.Errorf("%+v", st)
	}
	if _, err := m.NewSession(o); !errors.Is(err, ErrClosed) {
		t.Error("a closed drafter:", err)
	}
}

func TestPrefixesAreKept(t *testing.T) {
	for _, forget := range []bool{false, true} {
		m, err := OpenModel(ctx, openRuntime(t), models("demo.aerie"), &ModelOptions{ForgetPrefixes: forget})
		defer must(t, m, err).Close()
		first := start(t, m, settings(nil, 0, 0), longPrompt()...)
		want := take(t, first, 4)
		first.Close()
		second := start(t, m, settings(nil, 0, 0), longPrompt()...)
		isText(t, "again", take(t, second, 4), want)
		if st, err := second.Statistics(); err != nil || (st.ReusedTokens == 0) != forget {
			t.Errorf("forget %v: %d tokens reused, %v", forget, st.ReusedTokens, err)
		}
	}
}

func TestKVFullMakesRoom(t *testing.T) {
	var victim *Session
	asked := 0
	m, err := OpenModel(ctx, openRuntime(t), models("demo.aerie"), &ModelOptions{KVPositions: 896, ForgetPrefixes: true,
		KVFull: func(wanted int) bool {
			if asked++; wanted <= 0 || victim == nil {
				panic("no victim")
			}
			victim.Close()
			victim = nil
			return true
		}})
	defer must(t, m, err).Close()
	want := take(t, start(t, openDemo(t), settings(nil, 0, 0), longPrompt()...), 8)
	victim = start(t, m, settings(nil, 0, 0), longPrompt()...)
	take(t, victim, 4)
	s := start(t, m, settings(nil, 0, 0), longPrompt()...)
	isText(t, "after making room", take(t, s, 8), want)
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	third := start(t, m, settings(nil, 0, 0), longPrompt()...)
	var panicked *PanicError
	var at error
	for at == nil {
		_, at = third.Step(ctx, StepOptions{})
	}
	if !errors.Is(at, ErrLimit) || !errors.As(at, &panicked) {
		t.Error("a panic:", at)
	}
	both := []*Session{third, start(t, m, settings(nil, 0, 0), longPrompt()...)}
	b, err := m.NewBatch(BatchOptions{})
	defer must(t, b, err).Close()
	for _, s := range both {
		if err := b.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for failed := 0; failed < len(both); {
		step, err := b.Step(ctx, StepOptions{})
		if err != nil {
			t.Fatal(err)
		}
		failed = step.Failed
	}
	for i, s := range []*Session{both[0], both[1], both[0], both[1]} {
		if _, err := s.Result(); !errors.Is(err, ErrLimit) || !errors.As(err, &panicked) {
			t.Error("a panic in a batch's step, result", i, err)
		}
	}
}

func TestEvaluate(t *testing.T) {
	m := openDemo(t)
	info, err := m.Info()
	if must(t, info, err).FastPrefill {
		t.Errorf("%+v", info)
	}
	e, err := m.Evaluate(ctx, prompt, []int32{0, FinalHidden}, true)
	must(t, e, err)
	if len(e.Features) != len(prompt)*2*info.HiddenSize || len(e.Logits) != len(prompt)*info.VocabSize {
		t.Fatalf("%d features, %d logits", len(e.Features), len(e.Logits))
	}
	last := e.Logits[(len(prompt)-1)*info.VocabSize:]
	best := 0
	for i, logit := range last {
		if logit > last[best] {
			best = i
		}
	}
	isText(t, "the largest logit", []int32{int32(best)}, take(t, start(t, m, settings(nil, 0, 0), prompt...), 1))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Evaluate(ended, prompt, nil, true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A context that ends too late for its step must not cancel the next one.
func TestContextEndsAroundAStep(t *testing.T) {
	m := openDemo(t)
	want := take(t, start(t, m, settings(nil, 0, 0), longPrompt()...), 8)
	cancelled := 0
	for wait := time.Duration(0); wait < 3*time.Millisecond; wait += 150 * time.Microsecond {
		s := start(t, m, settings(nil, 0, 0), longPrompt()...)
		soon, stop := context.WithTimeout(ctx, wait)
		step, err := s.Step(soon, StepOptions{})
		stop()
		var got []int32
		for _, token := range step.Tokens {
			got = append(got, token.ID)
		}
		if errors.Is(err, ErrCancelled) && errors.Is(err, context.DeadlineExceeded) {
			cancelled++
		} else if err != nil {
			t.Fatal(err)
		}
		isText(t, wait.String(), append(got, take(t, s, 8-len(got))...), want)
		s.Close()
	}
	if cancelled == 0 {
		t.Error("no step was cancelled")
	}
}

func TestBatchRefusalsAndCancel(t *testing.T) {
	m := openDemo(t)
	b, err := m.NewBatch(BatchOptions{MaxRows: 8})
	defer must(t, b, err).Close()
	first, second := start(t, m, nil, prompt...), start(t, m, nil, prompt...)
	for _, s := range []*Session{first, second} {
		if err := b.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add(first); !errors.Is(err, ErrBusy) {
		t.Error("added twice:", err)
	}
	if _, err := first.Step(ctx, StepOptions{}); !errors.Is(err, ErrBusy) {
		t.Error("stepped alone:", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := b.Step(ended, StepOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.Cancel()
	if _, err := b.Step(ctx, StepOptions{}); !errors.Is(err, ErrCancelled) {
		t.Error("Cancel:", err)
	}
	if err := b.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(first); err == nil {
		t.Error("removed twice")
	}
	take(t, first, 4)
	first.Close()
	step, err := b.Step(ctx, StepOptions{})
	if must(t, step, err); step.Sessions != 1 || step.Tokens == 0 {
		t.Errorf("%+v", step)
	}
	second.Close()
	if step, err = b.Step(ctx, StepOptions{}); err == nil && step.Sessions != 0 {
		t.Errorf("%+v", step)
	}
}

func TestASecondGoroutineIsRefused(t *testing.T) {
	s := start(t, openDemo(t), settings(nil, 0, 0), prompt...)
	var all sync.WaitGroup
	busy := make(chan struct{}, 1)
	for i := 0; i < 3; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for {
				_, err := s.Step(ctx, StepOptions{})
				_, _ = s.Tokens()
				switch {
				case errors.Is(err, ErrClosed) || errors.Is(err, ErrCancelled):
					return
				case errors.Is(err, ErrBusy):
					select {
					case busy <- struct{}{}:
					default:
					}
				case err != nil:
					t.Error(err)
					return
				}
			}
		}()
	}
	select {
	case <-busy:
	case <-time.After(20 * time.Second):
		t.Error("never busy")
	}
	s.Close() // while they step
	all.Wait()
}

func TestFinalizersAreASafetyNet(t *testing.T) {
	m := openDemo(t)
	d, err := m.OpenDrafter(ctx, DrafterOptions{Package: models("demo-eagle.aerie"), MaxSessions: 1})
	defer must(t, d, err).Close()
	func() {
		s, err := m.NewSession(settings(d, 0, 0))
		b, err2 := m.NewBatch(BatchOptions{})
		if err := must(t, b, err2).Add(must(t, s, err)); err != nil {
			t.Fatal(err)
		}
	}()
	for i := 0; i < 200; i++ {
		runtime.GC()
		if s, err := m.NewSession(settings(d, 0, 0)); err == nil {
			s.Close()
			return
		} else if !errors.Is(err, ErrLimit) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the forgotten session still holds the drafter's one place")
}
