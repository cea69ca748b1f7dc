package aerie

// The cases that every binding runs.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"aerie/internal/ctest"
)

func TestTokensEqualTheCommandLines(t *testing.T) {
	m := demo(t)
	tokenizer, err := m.Tokenizer()
	defer must(t, tokenizer, err).Close()
	for _, drafter := range []*Drafter{nil, eagle(t, m)} {
		args := []string{"run", "--model", models("demo.aerie"), "--prompt", "The old man", "--temperature", "0.7",
			"--seed", "3", "--max-tokens", "48", "--ignore-eos", "--json", "--threads", "1"}
		if drafter != nil {
			args = append(args, "--drafter", models("demo-eagle.aerie"), "--tree", "chain", "--tree-nodes", "3")
		}
		out, err := exec.Command(command(t), args...).Output()
		var want struct {
			Tokens []int32
			Text   string
		}
		if err := json.Unmarshal(must(t, out, err), &want); err != nil {
			t.Fatal(err)
		}
		ids, err := tokenizer.Encode("The old man", EncodeOptions{})
		s := newSession_(t, m, chain(drafter, 3), must(t, ids, err)...)
		if got := take(t, s, 48); !equal(got, want.Tokens) || len(got) != 48 {
			t.Errorf("drafter %v: %v, the command line %v", drafter != nil, got, want.Tokens)
		}
	}
}

func TestOlderAndNewerStructSize(t *testing.T) {
	m := demo(t)
	s := newSession_(t, m, &SessionOptions{Sampling: Sampling{Temperature: 0.7, Seed: 5}}, prompt...)
	p := unsafe.Pointer(m.object.p)
	ids, code := ctest.Older(p, prompt, 5, 16)
	if want := take(t, s, 16); code != 0 || !equal(ids, want) {
		t.Errorf("an older header: code %d, %v, want %v", code, ids, want)
	}
	if code := ctest.Newer(p, 0); code != 0 {
		t.Error("a newer header's field at its default is refused:", Code(code))
	}
	if code := ctest.Newer(p, 1); Code(code) != ErrUnsupported {
		t.Error("a newer header's field that is set:", Code(code))
	}
}

func TestInjectedFailureFallsBackToPlainDecode(t *testing.T) {
	var lock sync.Mutex
	var said []string
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(level LogLevel, message string) {
		lock.Lock()
		defer lock.Unlock()
		said = append(said, message)
		panic("in the log") // must go no further
	}})
	defer must(t, r, err).Close()
	if err := r.LoadPlugin(plugin(t, "hostile")); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	want := take(t, newSession_(t, m, chain(nil, 7), prompt...), 24)
	for _, kind := range []string{"throw", "fail", "token"} {
		d, err := m.OpenDrafter(DrafterOptions{Plugin: kind})
		defer must(t, d, err).Close()
		s := newSession_(t, m, chain(d, 7), prompt...)
		if got := take(t, s, 24); !equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if st, err := s.Statistics(); err != nil || !st.Quarantined || st.DrafterFailures != 3 {
			t.Errorf("%s: %+v, %v", kind, st, err)
		}
	}
	if _, err := m.OpenDrafter(DrafterOptions{Plugin: "open_fails"}); !errors.Is(err, ErrMismatch) {
		t.Error("open fails:", err)
	}
	lock.Lock()
	defer lock.Unlock()
	if !strings.Contains(strings.Join(said, "\n"), "fail") {
		t.Error("the log was not told:", said)
	}
}

func TestCallbackOnAForeignThread(t *testing.T) {
	r := newRuntime(t)
	calls := 0
	var m *Model
	var err error
	if !ctest.OnForeignThread(func() {
		m, err = OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{Progress: func(done, total uint64) { calls++ }})
	}) {
		t.Fatal("no thread")
	}
	defer must(t, m, err).Close()
	if calls == 0 {
		t.Error("no progress was reported")
	}
	ctest.OnForeignThread(func() {
		_, err = OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{Progress: func(done, total uint64) { panic("boom") }})
	})
	var panicked *PanicError
	if !errors.As(err, &panicked) || panicked.Value != "boom" || !errors.Is(err, ErrCancelled) {
		t.Error("a panic in a callback:", err)
	}
}

func TestEmojiByteByByte(t *testing.T) {
	m := demo(t)
	tokenizer, err := m.Tokenizer()
	defer must(t, tokenizer, err).Close()
	ids, err := tokenizer.Encode("a🙂é\xff", EncodeOptions{NoBOS: true})
	if must(t, ids, err); len(ids) < 7 {
		t.Fatalf("%v: the demo tokenizer is expected to spell an emoji in bytes", ids)
	}
	d, err := tokenizer.NewDecoder()
	defer must(t, d, err).Close()
	var pieces []string
	for _, id := range ids {
		piece, err := d.Push(id)
		pieces = append(pieces, must(t, piece, err))
	}
	last, err := d.Finish()
	got := strings.Join(append(pieces, must(t, last, err)), "|")
	if strings.ReplaceAll(got, "|", "") != "a🙂é\uFFFD" || !strings.Contains(got, "|🙂|") {
		t.Error("pieces:", got)
	}

	// The same through the reader, one byte at a time.
	s := newSession_(t, m, nil, prompt...)
	r, err := s.Reader(ctx, tokenizer, 0)
	defer must(t, r, err).Close()
	r.tokens = &Generation{step: Step{State: Done}}
	for _, id := range ids {
		r.tokens.step.Tokens = append(r.tokens.step.Tokens, Token{ID: id})
	}
	var text bytes.Buffer
	for one := make([]byte, 1); ; {
		n, err := r.Read(one)
		text.Write(one[:n])
		if err != nil {
			break
		}
	}
	if text.String() != "a🙂é\uFFFD" {
		t.Errorf("%q", text.String())
	}
}

func TestCancelInMidPrefill(t *testing.T) {
	m := demo(t)
	long := make([]int32, 400)
	for i := range long {
		long[i] = int32(1 + i*7%1000)
	}
	want := take(t, newSession_(t, m, chain(nil, 1), long...), 8)

	s := newSession_(t, m, chain(nil, 1), long...)
	if step, err := s.Step(ctx, StepOptions{Budget: time.Microsecond}); err != nil || step.State != Pending {
		t.Fatalf("%+v, %v: one slice should not read the whole prompt", step, err)
	}
	s.Cancel()
	if _, err := s.Step(ctx, StepOptions{}); !errors.Is(err, ErrCancelled) || errors.Is(err, context.Canceled) {
		t.Error("Cancel:", err)
	}
	if got := take(t, s, 8); !equal(got, want) {
		t.Errorf("after Cancel: %v, want %v", got, want)
	}

	cancelled := 0
	for wait := time.Duration(0); wait < 4*time.Millisecond; wait += 50 * time.Microsecond {
		s := newSession_(t, m, chain(nil, 1), long...)
		soon, stop := context.WithTimeout(ctx, wait)
		step, err := s.Step(soon, StepOptions{})
		stop()
		var got []int32
		switch {
		case err == nil:
			for _, token := range step.Tokens {
				got = append(got, token.ID)
			}
		case errors.Is(err, ErrCancelled) && errors.Is(err, context.DeadlineExceeded):
			cancelled++
		default:
			t.Fatal(err)
		}
		// A context that ended too late for its step must not cancel this one.
		if got = append(got, take(t, s, 8-len(got))...); !equal(got, want) {
			t.Errorf("after %v: %v, want %v", wait, got, want)
		}
		s.Close()
	}
	if cancelled == 0 {
		t.Error("no step was cancelled")
	}
}

func TestDoubleCloseAndUseAfterClose(t *testing.T) {
	m := demo(t)
	r, err := NewRuntime(nil)
	must(t, r, err)
	d := eagle(t, m)
	s := newSession_(t, m, chain(d, 0), prompt...)
	b, err := m.NewBatch(BatchOptions{})
	must(t, b, err)
	tokenizer, err := m.Tokenizer()
	must(t, tokenizer, err)
	decoder, err := tokenizer.NewDecoder()
	must(t, decoder, err)
	for i := 0; i < 2; i++ {
		for _, c := range []interface{ Close() error }{s, b, d, decoder, tokenizer, m, r} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s.Cancel()
	b.Cancel()
	calls := map[string]func() error{
		"Step":        func() error { _, err := s.Step(ctx, StepOptions{}); return err },
		"Append":      func() error { return s.Append(1) },
		"Statistics":  func() error { _, err := s.Statistics(); return err },
		"NewSession":  func() error { _, err := m.NewSession(nil); return err },
		"Add":         func() error { return b.Add(s) },
		"Encode":      func() error { _, err := tokenizer.Encode("a", EncodeOptions{}); return err },
		"Push":        func() error { _, err := decoder.Push(1); return err },
		"LoadPlugins": func() error { return r.LoadPlugins("") },
		"OpenModel":   func() error { _, err := OpenModel(ctx, r, "x", nil); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestParentsClosedFirst(t *testing.T) {
	m := demo(t)
	want := take(t, newSession_(t, m, chain(eagle(t, m), 9), prompt...), 16)
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(LogLevel, string) {}})
	must(t, r, err)
	if err := r.LoadPlugins(""); err != nil {
		t.Fatal(err)
	}
	m, err = OpenModel(ctx, r, models("demo.aerie"), nil)
	must(t, m, err)
	d, err := m.OpenDrafter(DrafterOptions{Package: models("demo-eagle.aerie")})
	s := newSession_(t, m, chain(must(t, d, err), 9), prompt...)
	tokenizer, err := m.Tokenizer()
	if err := s.SetStopStrings(must(t, tokenizer, err), "never to be seen"); err != nil {
		t.Fatal(err)
	}
	b, err := m.NewBatch(BatchOptions{})
	must(t, b, err)
	r.Close()
	m.Close()
	d.Close()
	tokenizer.Close()
	if err := b.Add(s); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got := take(t, s, 16); !equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTwoSessionsOnOneModel(t *testing.T) {
	m := demo(t)
	d := eagle(t, m)
	var want, got [2][]int32
	for i := range want {
		want[i] = take(t, newSession_(t, m, chain(d, uint64(i)), prompt...), 48)
	}
	var both sync.WaitGroup
	for i := range got {
		s := newSession_(t, m, chain(d, uint64(i)), prompt...)
		both.Add(1)
		go func(i int) {
			defer both.Done()
			for g := s.Generate(ctx, 48); g.Next(); {
				got[i] = append(got[i], g.Token().ID)
			}
		}(i)
	}
	both.Wait()
	for i := range got {
		if !equal(got[i], want[i]) {
			t.Errorf("session %d: %v, alone %v", i, got[i], want[i])
		}
	}
}

func TestBadPlugins(t *testing.T) {
	r := newRuntime(t)
	for name, code := range map[string]Code{"no_entry": ErrPlugin, "wrong_major": ErrUnsupported, "too_new": ErrUnsupported} {
		err := r.LoadPlugin(plugin(t, name))
		var e *Error
		if !errors.As(err, &e) || (e.Code != code && e.Code != ErrPlugin) || !strings.Contains(e.Message, name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.LoadPlugin("hostile.so"); !errors.Is(err, ErrInvalidArgument) {
		t.Error("a relative path:", err)
	}
	if err := r.LoadPlugin("/no/such.so"); err == nil {
		t.Error("no such file, no error")
	}
	if err := r.LoadPlugin("/a\x00b"); !errors.Is(err, ErrInvalidArgument) {
		t.Error("a NUL:", err)
	}
	if plugins, err := r.Plugins(); err != nil || len(plugins) == 0 {
		t.Error("the good ones:", plugins, err)
	}
}

func TestThousandLoads(t *testing.T) {
	resident := func() int {
		data, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip("no /proc")
		}
		pages, err := strconv.Atoi(strings.Fields(string(data))[1])
		return must(t, pages, err) * os.Getpagesize()
	}
	r := newRuntime(t)
	before := 0
	for i := 0; i < 1000; i++ {
		if i == 200 {
			before = resident()
		}
		m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
		must(t, m, err)
		d, err := m.OpenDrafter(DrafterOptions{Plugin: "ngram"})
		s, err2 := m.NewSession(chain(must(t, d, err), 0))
		if err := must(t, s, err2).Append(prompt...); err != nil {
			t.Fatal(err)
		}
		_, err = s.Step(ctx, StepOptions{})
		must(t, s, err)
		s.Close()
		d.Close()
		m.Close()
	}
	if grown := resident() - before; grown > 8<<20 {
		t.Errorf("800 loads grew the process by %d bytes", grown)
	}
}
