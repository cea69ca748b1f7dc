package aerie

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLoadReportsAndIsCancelled(t *testing.T) {
	r := newRuntime(t)
	var last, total uint64
	m, err := OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{CheckData: true, Progress: func(d, t uint64) { last, total = d, t }})
	must(t, m, err).Close()
	if last == 0 || last != total {
		t.Errorf("progress ended at %d of %d", last, total)
	}
	soon, cancel := context.WithCancel(ctx)
	_, err = OpenModel(soon, r, models("demo.aerie"), &ModelOptions{Progress: func(d, t uint64) { cancel() }})
	if err != nil && (!errors.Is(err, ErrCancelled) || !errors.Is(err, context.Canceled)) {
		t.Error(err)
	}
	if _, err = OpenModel(soon, r, models("demo.aerie"), nil); !errors.Is(err, context.Canceled) {
		t.Error("a context that has ended:", err)
	}
}

func TestErrors(t *testing.T) {
	r := newRuntime(t)
	_, err := OpenModel(ctx, r, "/no/such/file.aerie", nil)
	var e *Error
	if !errors.Is(err, ErrNotFound) || errors.Is(err, ErrIO) || !errors.As(err, &e) || !strings.Contains(e.Message, "/no/such/file.aerie") {
		t.Error(err)
	}
	if _, err := NewRuntime(&RuntimeOptions{Device: "abacus"}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if _, err := NewRuntime(&RuntimeOptions{Threads: 1 << 40}); !errors.Is(err, ErrInvalidArgument) {
		t.Error("a number beyond int32:", err)
	}
	if ErrLimit.Error() != "aerie: limit" {
		t.Error(ErrLimit)
	}
	m := demo(t)
	if _, err := m.OpenDrafter(DrafterOptions{Package: models("demo.aerie"), Plugin: "eagle"}); err == nil {
		t.Error("a target is no EAGLE head")
	}
	if _, err := NewTokenizer([]byte("rubbish")); err == nil {
		t.Error("rubbish is no tokenizer")
	}
	s := newSession_(t, m, nil)
	if _, err := s.Step(ctx, StepOptions{}); err == nil {
		t.Error("a step without a prompt")
	}
	if err := s.Rewind(-1); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestModelInfo(t *testing.T) {
	i, err := demo(t).Info()
	if must(t, i, err); i.VocabSize == 0 || i.Name == "" || len(i.Fingerprint) == 0 || len(i.EOS) == 0 || i.MaxContext == 0 || i.WeightBytes == 0 {
		t.Errorf("%+v", i)
	}
}

func TestRewindAndSettings(t *testing.T) {
	m := demo(t)
	s := newSession_(t, m, chain(eagle(t, m), 4), prompt...)
	want := take(t, s, 20)
	if err := s.Rewind(len(prompt) + 5); err != nil {
		t.Fatal(err)
	}
	if err := s.SetTree(Tree{Policy: TreeStatic, Paths: [][]int32{{0}, {1}, {0, 0}}}); err != nil {
		t.Fatal(err)
	}
	if got := take(t, s, 15); !equal(got, want[5:]) {
		t.Errorf("%v, want %v", got, want[5:])
	}
	tokens, err := s.Tokens()
	if must(t, tokens, err); !equal(tokens[len(prompt):], want) {
		t.Errorf("%v, want %v", tokens, want)
	}
	if err := s.SetSampling(Sampling{}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSampling(Sampling{TopP: -1}); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
	st, err := s.Statistics()
	if must(t, st, err); st.Emitted != 35 || st.Tau() < 1 || st.Proposed == 0 || st.Verify == 0 {
		t.Errorf("%+v", st)
	}
}

func TestReaderCutsTheStopString(t *testing.T) {
	m := demo(t)
	tokenizer, err := m.Tokenizer()
	defer must(t, tokenizer, err).Close()
	ids, err := tokenizer.Encode("The old man", EncodeOptions{})
	must(t, ids, err)
	read := func(stop ...string) (string, Finish) {
		s := newSession_(t, m, chain(nil, 3), ids...)
		if err := s.SetStopStrings(tokenizer, stop...); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Reader(ctx, tokenizer, 40)
		defer must(t, r, err).Close()
		text, err := io.ReadAll(r)
		return string(must(t, text, err)), r.Finish()
	}
	whole, finish := read()
	if finish != NotFinished || len(whole) < 40 {
		t.Fatalf("%q, %d", whole, finish)
	}
	for from := 3; from < 30; from++ {
		stop := whole[from : from+7]
		want := whole[:strings.Index(whole, stop)]
		if got, finish := read("not in the text", stop); got != want || finish != FinishStopString {
			t.Errorf("stop %q: %q, want %q (finish %d)", stop, got, want, finish)
		}
	}
	if err := newSession_(t, m, nil).SetStopStrings(tokenizer, ""); !errors.Is(err, ErrInvalidArgument) {
		t.Error("an empty stop string:", err)
	}
}

func TestBatchGivesEachItsOwnText(t *testing.T) {
	m := demo(t)
	d := eagle(t, m)
	b, err := m.NewBatch(BatchOptions{})
	defer must(t, b, err).Close()
	var sessions []*Session
	var want, got [3][]int32
	for i := range want {
		o := chain(d, uint64(i))
		if i == 1 {
			o.Drafter = nil
		}
		want[i] = take(t, newSession_(t, m, o, prompt[:i+2]...), 20)
		s := newSession_(t, m, o, prompt[:i+2]...)
		if err := b.Add(s); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	if err := b.Add(sessions[0]); !errors.Is(err, ErrBusy) {
		t.Error("added twice:", err)
	}
	if _, err := sessions[0].Step(ctx, StepOptions{}); !errors.Is(err, ErrBusy) {
		t.Error("stepped alone:", err)
	}
	for len(got[0]) < 20 || len(got[1]) < 20 || len(got[2]) < 20 {
		if _, err := b.Step(ctx, StepOptions{}); err != nil {
			t.Fatal(err)
		}
		for i, s := range sessions {
			step, err := s.Result()
			must(t, step, err)
			for _, token := range step.Tokens {
				got[i] = append(got[i], token.ID)
			}
		}
		runtime.GC()
	}
	for i := range got {
		if !equal(got[i][:20], want[i]) {
			t.Errorf("session %d: %v, alone %v", i, got[i], want[i])
		}
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
	if err := b.Remove(sessions[0]); err != nil {
		t.Fatal(err)
	}
	if err := b.Remove(sessions[0]); err == nil {
		t.Error("removed twice")
	}
	sessions[1].Close()
	step, err := b.Step(ctx, StepOptions{})
	if must(t, step, err); step.Sessions != 1 || step.Tokens == 0 {
		t.Errorf("%+v", step)
	}
	take(t, sessions[0], 4)
}

func TestASecondGoroutineIsRefused(t *testing.T) {
	m := demo(t)
	s := newSession_(t, m, chain(nil, 0), prompt...)
	var wait sync.WaitGroup
	stop := make(chan struct{})
	busy := make(chan struct{}, 1)
	for i := 0; i < 3; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := s.Step(ctx, StepOptions{})
				_, _ = s.Tokens()
				if errors.Is(err, ErrBusy) {
					select {
					case busy <- struct{}{}:
					default:
					}
				} else if err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
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
	close(stop)
	wait.Wait()
}

func TestFinalizersAreASafetyNet(t *testing.T) {
	m := demo(t)
	d, err := m.OpenDrafter(DrafterOptions{Package: models("demo-eagle.aerie"), MaxSessions: 1})
	defer must(t, d, err).Close()
	func() {
		s, err := m.NewSession(chain(d, 0))
		if err := must(t, s, err).Append(prompt...); err != nil {
			t.Fatal(err)
		}
		b, err := m.NewBatch(BatchOptions{})
		if err := must(t, b, err).Add(s); err != nil {
			t.Fatal(err)
		}
	}()
	for i := 0; i < 200; i++ {
		runtime.GC()
		if s, err := m.NewSession(chain(d, 0)); err == nil {
			s.Close()
			return
		} else if !errors.Is(err, ErrLimit) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("the forgotten session still holds the drafter's one place")
}
