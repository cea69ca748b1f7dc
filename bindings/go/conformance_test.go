package aerie

// The cases of bindings/conformance.md: one binding, one C API, one text.

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"aerie/internal/ctest"
)

func TestTokensEqualCAPI(t *testing.T) {
	m := openDemo(t)
	ngram, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "ngram"})
	defer must(t, ngram, err).Close()
	for _, temperature := range []float32{0, 0.8} {
		want := theText(t, temperature, 5, 64)
		for name, d := range map[string]*Drafter{"none": nil, "eagle": openEagle(t, m), "ngram": ngram} {
			s := start(t, m, settings(d, temperature, 5), prompt...)
			isText(t, name, take(t, s, 64), want)
			if st, err := s.Statistics(); err != nil || name == "eagle" && st.Accepted == 0 {
				t.Errorf("%s: %+v, %v", name, st, err)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	data, err := os.ReadFile("../../tests/abi/layout.txt")
	want := map[string]string{}
	for _, line := range strings.Split(string(must(t, data, err)), "\n") {
		if f := strings.Fields(line); len(f) == 2 {
			want[f[0]] = f[1]
		}
	}
	for name, s := range ctest.Structs() {
		if got := fmt.Sprint(s.Size()); got != want[name] {
			t.Errorf("%s: %s bytes, want %s", name, got, want[name])
		}
		for i := 0; i < s.NumField(); i++ {
			f := s.Field(i)
			if f.Name == "_" { // cgo's padding
				continue
			}
			full := name + "." + strings.TrimPrefix(f.Name, "_") // cgo writes _package for package
			if got := fmt.Sprint(f.Offset); got != want[full] {
				t.Errorf("%s: at %s, want %q", full, got, want[full])
			}
		}
	}
}

func TestOlderStructSize(t *testing.T) {
	m := openDemo(t)
	ids, code := ctest.Older(unsafe.Pointer(m.object.p), prompt, 8)
	if code != 0 {
		t.Fatal(Code(code))
	}
	isText(t, "an older header", ids, take(t, start(t, m, nil, prompt...), 8))
}

func TestNewerStructSize(t *testing.T) {
	p := unsafe.Pointer(openDemo(t).object.p)
	if code := ctest.Newer(p, prompt, 0); code != 0 {
		t.Error("fields at their default:", Code(code))
	}
	if code := Code(ctest.Newer(p, prompt, 1)); code != ErrUnsupported {
		t.Error("a field that is set:", code)
	}
}

func TestInjectedFailure(t *testing.T) {
	said := make(chan string, 100)
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(_ LogLevel, message string) { said <- message }})
	defer must(t, r, err).Close()
	if err := r.LoadPlugin(plugin(t, "hostile")); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "throw"})
	defer must(t, d, err).Close()
	s := start(t, m, settings(d, 0.8, 5), prompt...)
	isText(t, "throw", take(t, s, 64), theText(t, 0.8, 5, 64))
	if st, err := s.Statistics(); err != nil || !st.Quarantined || st.DrafterFailures != 3 {
		t.Errorf("%+v, %v", st, err)
	}
	if len(said) == 0 {
		t.Error("the log was not told")
	}
}

func TestNoMemory(t *testing.T) {
	for gives := 0; ; gives++ {
		code, left := ctest.NoMemory(models("demo.aerie"), prompt, gives)
		if left != 0 {
			t.Errorf("after %d allocations, %d pieces were kept", gives, left)
		}
		if code == 0 {
			if gives == 0 {
				t.Error("the allocator was not asked")
			}
			return
		}
		if Code(code) != ErrOutOfMemory {
			t.Fatalf("after %d allocations: %v", gives, Code(code))
		}
	}
}

func TestOwnAllocatorAndJobs(t *testing.T) {
	said := func(host ctest.Host) (ids []int32, err error) {
		r, err := NewRuntime(&RuntimeOptions{Threads: 2, Native: NativeHooks{Alloc: ctest.Alloc, Free: ctest.FreePiece, AllocUser: host.User(),
			ParallelFor: ctest.ParallelFor, ParallelUser: host.User()}})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
		if err != nil {
			return nil, err
		}
		s, err := m.NewSession(settings(nil, 0.8, 5))
		m.Close() // before what stands on it
		if err != nil {
			return nil, err
		}
		defer s.Close()
		if err := s.Append(prompt...); err != nil {
			return nil, err
		}
		g := s.Generate(ctx, 32)
		for g.Next() {
			ids = append(ids, g.Token().ID)
		}
		return ids, g.Err()
	}
	for _, gives := range []int{0, 1, 3, 1 << 30} {
		host := ctest.NewHost(gives)
		ids, err := said(host)
		if host.Pieces() != 0 {
			t.Errorf("%d pieces did not come back", host.Pieces())
		}
		if gives < 1<<30 {
			if !errors.Is(err, ErrOutOfMemory) {
				t.Errorf("after %d allocations: %v", gives, err)
			}
		} else if isText(t, "on the host's memory and jobs", must(t, ids, err), theText(t, 0.8, 5, 32)); host.Rounds() < 32 {
			t.Errorf("%d rounds of jobs", host.Rounds())
		}
		host.Free()
	}
	if _, err := NewRuntime(&RuntimeOptions{Native: NativeHooks{Alloc: ctest.Alloc}}); !errors.Is(err, ErrInvalidArgument) {
		t.Error("alloc without free:", err)
	}
}

func TestLinkedPlugin(t *testing.T) {
	r, err := NewRuntime(&RuntimeOptions{Threads: 1})
	defer must(t, r, err).Close()
	if err := r.AddPlugin("linked", ctest.PluginEntry(plugin(t, "foreign_log"))); err != nil {
		t.Fatal(err)
	}
	all, err := r.Plugins()
	if len(must(t, all, err)) != 1 || all[0].ID != "foreign_log" || all[0].Path != "linked" {
		t.Errorf("%+v", all)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "foreign_log"})
	defer must(t, d, err).Close()
	isText(t, "with it", take(t, start(t, m, settings(d, 0.8, 5), prompt...), 16), theText(t, 0.8, 5, 16))
	if err := r.AddPlugin("old one", ctest.PluginEntry(plugin(t, "wrong_major"))); err == nil || !strings.Contains(err.Error(), "old one") {
		t.Error(err)
	}
	if err := r.AddPlugin("nothing", nil); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestForeignThreadCallback(t *testing.T) {
	heard := false
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(_ LogLevel, message string) {
		if strings.Contains(message, "from a foreign thread") {
			heard = true
		}
	}})
	defer must(t, r, err).Close()
	if err := r.LoadPlugin(plugin(t, "foreign_log")); err != nil {
		t.Fatal(err)
	}
	var m *Model
	calls := 0
	if !ctest.OnForeignThread(func() { // the other way round: C's thread opens the model
		m, err = OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{Progress: func(_, _ uint64) { calls++ }})
	}) || calls == 0 {
		t.Errorf("%d calls of progress on a thread of C's", calls)
	}
	defer must(t, m, err).Close()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "foreign_log"})
	must(t, d, err).Close()
	if !heard {
		t.Error("what a foreign thread logged was not heard")
	}
}

func TestCallbackThatFails(t *testing.T) {
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(LogLevel, string) { panic("in the log") }})
	defer must(t, r, err).Close()
	if err := r.LoadPlugin(plugin(t, "foreign_log")); err != nil {
		t.Fatal(err)
	}
	_, err = OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{Progress: func(_, _ uint64) { panic("in the progress") }})
	var panicked *PanicError
	if !errors.As(err, &panicked) || panicked.Value != "in the progress" || !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "foreign_log"}) // logs
	defer must(t, d, err).Close()
	take(t, start(t, m, settings(d, 0, 0), prompt...), 4)
}

// What t.Fatal in a callback comes to.
func TestCallbackThatExits(t *testing.T) {
	var exits atomic.Int32
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(LogLevel, string) { exits.Add(1); runtime.Goexit() }})
	defer must(t, r, err).Close()
	if err := r.LoadPlugin(plugin(t, "hostile")); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "throw"})
	defer must(t, d, err).Close()
	s, err := m.NewSession(settings(d, 0.8, 5)) // not closed when the test fails: that would take for ever
	if err := must(t, s, err).Append(prompt...); err != nil {
		t.Fatal(err)
	}
	isText(t, "after exits in the log", onItsOwn(t, func() []int32 { return take(t, s, 64) }), theText(t, 0.8, 5, 64))
	if exits.Load() == 0 {
		t.Error("the log was not told")
	}
	s.Close()
	err = onItsOwn(t, func() error {
		_, err := OpenModel(ctx, r, models("demo.aerie"), &ModelOptions{Progress: func(_, _ uint64) { runtime.Goexit() }})
		return err
	})
	var left *PanicError
	if !errors.As(err, &left) || left.Value != "runtime.Goexit" || !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
}

// onItsOwn runs f on a goroutine of its own, whose end before f's is the test's.
func onItsOwn[T any](t *testing.T, f func() T) (value T) {
	t.Helper()
	returned := make(chan bool, 1)
	go func() {
		done := false
		defer func() { returned <- done }()
		value = f()
		done = true
	}()
	if !<-returned {
		t.Fatal("the callback's runtime.Goexit ended its caller")
	}
	return value
}

func TestKVFullThatExits(t *testing.T) {
	if os.Getenv("AERIE_KV_FULL_EXITS") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestKVFullThatExits$", "-test.timeout=60s")
		c.Env = append(os.Environ(), "AERIE_KV_FULL_EXITS=1")
		out, err := c.CombinedOutput()
		if says := "panic: aerie: KVFull has called runtime.Goexit"; err == nil || !strings.Contains(string(out), says) {
			t.Errorf("%v, want %q in: %s", err, says, out)
		}
		return
	}
	m, err := OpenModel(ctx, openRuntime(t), models("demo.aerie"), &ModelOptions{KVPositions: 512, ForgetPrefixes: true,
		KVFull: func(int) bool { t.FailNow(); return false }})
	must(t, m, err)
	take(t, start(t, m, settings(nil, 0, 0), longPrompt()...), 1)
	take(t, start(t, m, settings(nil, 0, 0), longPrompt()...), 1)
}

func TestEmojiByBytes(t *testing.T) {
	const text = "a😀é✓b"
	tokenizer := openTokenizer(t, openDemo(t))
	ids, err := tokenizer.Encode(text, EncodeOptions{NoBOS: true})
	if must(t, ids, err); len(ids) <= utf8.RuneCountInString(text) {
		t.Fatalf("%v: the demo tokenizer is expected to spell these characters in bytes", ids)
	}
	d, err := tokenizer.NewDecoder()
	defer must(t, d, err).Close()
	all := ""
	for _, id := range ids {
		piece, err := d.Push(id)
		if must(t, piece, err); !utf8.ValidString(piece) {
			t.Errorf("%q is not UTF-8", piece)
		}
		all += piece
	}
	rest, err := d.Finish()
	if all += must(t, rest, err); all != text {
		t.Errorf("%q", all)
	}
	ids, err = tokenizer.Encode("😀", EncodeOptions{NoBOS: true})
	for _, id := range must(t, ids, err)[:len(ids)-1] {
		piece, err := d.Push(id)
		must(t, piece, err)
	}
	if rest, err = d.Finish(); must(t, rest, err) != "\uFFFD" {
		t.Errorf("a cut emoji: %q", rest)
	}
}

func longPrompt() []int32 {
	long := make([]int32, 400)
	for i := range long {
		long[i] = int32(1 + i*7%1000)
	}
	return long
}

func TestLongestBudget(t *testing.T) {
	s := start(t, openDemo(t), settings(nil, 0, 0), 1, 2, 3)
	if step, err := s.Step(ctx, StepOptions{Budget: math.MaxInt64}); err != nil || step.State != Emitted {
		t.Errorf("%+v, %v", step, err)
	}
}

func TestCancelInPrefill(t *testing.T) {
	m := openDemo(t)
	want := take(t, start(t, m, settings(nil, 0, 0), longPrompt()...), 8)
	s := start(t, m, settings(nil, 0, 0), longPrompt()...)
	if step, err := s.Step(ctx, StepOptions{Budget: time.Microsecond}); err != nil || step.State != Pending {
		t.Fatalf("%+v, %v: one slice should not read the whole prompt", step, err)
	}
	done := make(chan struct{})
	go func() { s.Cancel(); close(done) }()
	<-done
	if _, err := s.Step(ctx, StepOptions{}); !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
	isText(t, "after the cancel", take(t, s, 8), want)
}

func TestCancelWhileStepping(t *testing.T) {
	m := openDemo(t)
	for i := 0; i < 10; i++ {
		s := start(t, m, settings(nil, 0, 0), longPrompt()...)
		var told atomic.Bool
		go func() {
			time.Sleep(2 * time.Millisecond)
			s.Cancel()
			told.Store(true)
		}()
		var err error
		for err == nil {
			before := told.Load()
			if _, err = s.Step(ctx, StepOptions{MaxTokens: 1}); err == nil {
				if before {
					t.Fatal("a step that began after the cancel went through")
				}
				if tokens, e := s.Tokens(); e != nil || len(tokens) > 450 {
					_ = s.Rewind(400)
				}
			}
		}
		if !errors.Is(err, ErrCancelled) {
			t.Error(err)
		}
		s.Close()
	}
}

func TestLateCancel(t *testing.T) {
	m := openDemo(t)
	want := take(t, start(t, m, settings(nil, 0, 0), prompt...), 8)
	s := start(t, m, settings(nil, 0, 0), prompt...)
	b, err := m.NewBatch(BatchOptions{})
	defer must(t, b, err).Close()
	one := StepOptions{MaxTokens: 1}
	s.Cancel()
	s.ClearCancel()
	if _, err := s.Step(ctx, one); err != nil {
		t.Error("a cancel that was cleared:", err)
	}
	s.Cancel()
	if _, err := s.Step(ctx, one); !errors.Is(err, ErrCancelled) {
		t.Error("a cancel that was not:", err)
	}
	if err := b.Add(s); err != nil { // the same of a batch
		t.Fatal(err)
	}
	b.Cancel()
	b.ClearCancel()
	if step, err := b.Step(ctx, one); err != nil || step.Failed != 0 {
		t.Error("a batch's cancel that was cleared:", step, err)
	}
	b.Cancel()
	if _, err := b.Step(ctx, one); !errors.Is(err, ErrCancelled) {
		t.Error("a batch's cancel that was not:", err)
	}
	if err := b.Remove(s); err != nil {
		t.Fatal(err)
	}
	tokens, err := s.Tokens()
	said := must(t, tokens, err)[len(prompt):]
	isText(t, "after the cancels", append(said, take(t, s, 8-len(said))...), want)
}

func TestDoubleClose(t *testing.T) {
	m := openDemo(t)
	r, err := NewRuntime(nil)
	must(t, r, err)
	d := openEagle(t, m)
	s := start(t, m, settings(d, 0, 0), prompt...)
	b, err := m.NewBatch(BatchOptions{})
	must(t, b, err)
	tokenizer := openTokenizer(t, m)
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

func TestParentClosedFirst(t *testing.T) {
	r, err := NewRuntime(&RuntimeOptions{Threads: 1, Log: func(LogLevel, string) {}})
	must(t, r, err)
	if err := r.LoadPlugins(""); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	must(t, m, err)
	d, err := m.OpenDrafter(ctx, DrafterOptions{Package: models("demo-eagle.aerie")})
	s := start(t, m, settings(must(t, d, err), 0.8, 5), prompt...)
	tokenizer := openTokenizer(t, m)
	if err := s.SetStopStrings(tokenizer, "never to be seen"); err != nil {
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
	isText(t, "without its parents", take(t, s, 64), theText(t, 0.8, 5, 64))
	s.Close()
}

func TestTwoSessions(t *testing.T) {
	m := openDemo(t)
	d := openEagle(t, m)
	var got [2][]int32
	var both sync.WaitGroup
	for i := range got {
		s := start(t, m, settings(d, 0.8, uint64(5+i)), prompt...)
		both.Add(1)
		go func(i int) {
			defer both.Done()
			for g := s.Generate(ctx, 64); g.Next(); {
				got[i] = append(got[i], g.Token().ID)
			}
		}(i)
	}
	both.Wait()
	for i := range got {
		isText(t, fmt.Sprint("session ", i), got[i], theText(t, 0.8, uint64(5+i), 64))
	}
}

func TestBatch(t *testing.T) {
	m := openDemo(t)
	b, err := m.NewBatch(BatchOptions{})
	defer must(t, b, err).Close()
	var sessions [3]*Session
	var got [3][]int32
	for i := range sessions {
		o := settings(nil, 0.8, uint64(5+i))
		if i == 1 {
			o.Drafter = openEagle(t, m)
		}
		sessions[i] = start(t, m, o, prompt...)
		if err := b.Add(sessions[i]); err != nil {
			t.Fatal(err)
		}
	}
	for in := 3; len(got[0]) < 64 || len(got[1]) < 64; {
		if _, err := b.Step(ctx, StepOptions{}); err != nil {
			t.Fatal(err)
		}
		for i, s := range sessions[:in] {
			step, err := s.Result()
			for _, token := range must(t, step, err).Tokens {
				got[i] = append(got[i], token.ID)
			}
		}
		if in == 3 && len(got[2]) >= 32 {
			if err := b.Remove(sessions[2]); err != nil {
				t.Fatal(err)
			}
			in = 2
		}
	}
	got[2] = append(got[2], take(t, sessions[2], 64-len(got[2]))...)
	for i := range got {
		isText(t, fmt.Sprint("session ", i), got[i][:64], theText(t, 0.8, uint64(5+i), 64))
	}
}

func TestBadPlugin(t *testing.T) {
	r := openRuntime(t)
	text := t.TempDir() + "/text.so"
	if err := os.WriteFile(text, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{"hostile.so": "hostile.so", "/no/such.so": "/no/such.so", text: text,
		plugin(t, "no_entry"): "no_entry", plugin(t, "wrong_major"): "wrong_major", plugin(t, "too_new"): "too_new"} {
		var e *Error
		if err := r.LoadPlugin(path); !errors.As(err, &e) || !strings.Contains(e.Message, says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := r.LoadPlugin("/a\x00b"); !errors.Is(err, ErrInvalidArgument) {
		t.Error("a NUL:", err)
	}
	if err := r.LoadPlugin(plugin(t, "hostile")); err != nil {
		t.Fatal(err)
	}
	m, err := OpenModel(ctx, r, models("demo.aerie"), nil)
	defer must(t, m, err).Close()
	if _, err := m.OpenDrafter(ctx, DrafterOptions{Plugin: "open_fails"}); err == nil || !strings.Contains(err.Error(), "open_fails") {
		t.Error(err)
	}
	take(t, start(t, m, settings(openEagle(t, m), 0, 0), prompt...), 4)
}

func TestErrors(t *testing.T) {
	m := openDemo(t)
	r := openRuntime(t)
	whole, err := os.ReadFile(models("demo.aerie"))
	cut := t.TempDir() + "/cut.aerie"
	if err := os.WriteFile(cut, must(t, whole, err)[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]Code{"/no/such/file.aerie": ErrNotFound, cut: ErrBadFormat, models("demo-eagle.aerie"): ErrMismatch} {
		_, err := OpenModel(ctx, r, path, nil)
		var e *Error
		if !errors.Is(err, code) || errors.Is(err, ErrIO) || !errors.As(err, &e) || !strings.Contains(e.Message, path) {
			t.Errorf("%s: %v, want %v", path, err, code)
		}
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
	if _, err := NewTokenizer([]byte("rubbish")); err == nil {
		t.Error("rubbish is no tokenizer")
	}
	s := start(t, m, nil)
	if _, err := s.Step(ctx, StepOptions{}); err == nil {
		t.Error("a step without a prompt")
	}
	if err := s.SetSampling(Sampling{TopP: -1}); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
	if err := s.Rewind(-1); !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
}

func TestRewind(t *testing.T) {
	m := openDemo(t)
	want := theText(t, 0.8, 5, 64)
	s := start(t, m, settings(openEagle(t, m), 0.8, 5), prompt...)
	isText(t, "first", take(t, s, 32), want[:32])
	if err := s.Rewind(len(prompt) + 22); err != nil {
		t.Fatal(err)
	}
	if err := s.SetTree(Tree{Policy: TreeStatic, Paths: [][]int32{{0}, {1}, {0, 0}}}); err != nil {
		t.Fatal(err)
	}
	isText(t, "again", take(t, s, 32), want[22:54])
	tokens, err := s.Tokens()
	isText(t, "all", must(t, tokens, err)[len(prompt):], want[:54])
}

func TestStatistics(t *testing.T) {
	m := openDemo(t)
	s := start(t, m, settings(openEagle(t, m), 0, 0), prompt...)
	n := len(take(t, s, 64))
	if st, err := s.Statistics(); err != nil || st.Emitted != uint64(n) || st.Cycles > st.Emitted || st.Tau() < 1 ||
		st.Proposed == 0 || st.Verify == 0 || st.Tried[0] == 0 || st.PrefillTokens == 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

func TestFork(t *testing.T) {
	m := openDemo(t)
	want := theText(t, 0, 5, 64)
	s := start(t, m, settings(openEagle(t, m), 0, 5), prompt...)
	tokenizer := openTokenizer(t, m)
	if err := s.SetStopStrings(tokenizer, "never to be seen"); err != nil {
		t.Fatal(err)
	}
	isText(t, "before", take(t, s, 20), want[:20])
	fork, err := s.Fork(0)
	defer must(t, fork, err).Close()
	tokenizer.Close()
	isText(t, "the fork", take(t, fork, 44), want[20:])
	isText(t, "the first", take(t, s, 44), want[20:])

	drawn := start(t, m, settings(nil, 1, 5), prompt...)
	var texts [3][]int32
	for i, stream := range []uint32{0, 7, 7} {
		fork, err := drawn.Fork(stream)
		texts[i] = take(t, must(t, fork, err), 20)
		fork.Close()
	}
	isText(t, "equal streams", texts[1], texts[2])
	if fmt.Sprint(texts[0]) == fmt.Sprint(texts[1]) {
		t.Error("different streams, one text")
	}
}

func TestSaveRestore(t *testing.T) {
	m := openDemo(t)
	d := openEagle(t, m)
	want := theText(t, 0.8, 5, 64)
	s := start(t, m, settings(d, 0.8, 5), prompt...)
	isText(t, "before", take(t, s, 20), want[:20])
	path := t.TempDir() + "/saved"
	if err := s.SaveFile(path); err != nil {
		t.Fatal(err)
	}
	data, err := s.Save()
	must(t, data, err)
	s.Close()
	for name, restore := range map[string]func() (*Session, error){
		"bytes": func() (*Session, error) { return m.RestoreSession(settings(d, 0.8, 5), data) },
		"file":  func() (*Session, error) { return m.RestoreSessionFile(settings(d, 0.8, 5), path) },
		"plain": func() (*Session, error) { return m.RestoreSession(settings(nil, 0.8, 5), data) },
	} {
		s, err := restore()
		isText(t, name, take(t, must(t, s, err), 44), want[20:])
		s.Close()
	}
	data[len(data)/2] ^= 1
	if _, err := m.RestoreSession(nil, data); !errors.Is(err, ErrBadFormat) {
		t.Error("a flipped bit:", err)
	}
	if _, err := m.RestoreSession(nil, nil); !errors.Is(err, ErrBadFormat) {
		t.Error("nothing:", err)
	}
	if _, err := m.RestoreSessionFile(nil, "/no/such/file"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestLoadCycles(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory grows")
	}
	resident := func() int {
		debug.FreeOSMemory() // Go's own garbage apart
		data, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Skip("no /proc")
		}
		pages, err := strconv.Atoi(strings.Fields(string(data))[1])
		return must(t, pages, err) * os.Getpagesize()
	}
	runtime.LockOSThread() // the C library's malloc keeps an arena for each thread, which is no growth of ours
	defer runtime.UnlockOSThread()
	before := 0
	for i := 0; i < 1000; i++ {
		if i == 200 {
			before = resident()
		}
		r, err := NewRuntime(&RuntimeOptions{Threads: 1})
		m, err := OpenModel(ctx, must(t, r, err), models("demo.aerie"), nil)
		s, err := must(t, m, err).NewSession(settings(nil, 0, 0)) // a chain: auto would measure passes first
		if err := must(t, s, err).Append(prompt...); err != nil {
			t.Fatal(err)
		}
		_, err = s.Step(ctx, StepOptions{})
		must(t, s, err)
		s.Close()
		m.Close()
		r.Close()
	}
	if grown := resident() - before; grown > 4<<20 {
		t.Errorf("800 loads grew the process by %d bytes", grown)
	}
}
