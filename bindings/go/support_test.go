package aerie

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var ctx = context.Background()

// The prompt of bindings/conformance.md.
var prompt = []int32{260, 513, 1021, 88, 300, 47, 911, 1500, 12, 345}

// models is a demo package's path.
func models(name string) string {
	folder := os.Getenv("AERIE_MODELS")
	if folder == "" {
		folder = filepath.Join("..", "..", "samples", "models")
	}
	return filepath.Join(folder, name)
}

// built is a file of the tests preset's build tree.
func built(t testing.TB, path ...string) string {
	t.Helper()
	folder := os.Getenv("AERIE_DIR")
	if folder == "" {
		t.Skip("AERIE_DIR is not set: a build tree of the tests preset")
	}
	return filepath.Join(append([]string{folder}, path...)...)
}

func plugin(t testing.TB, name string) string { return built(t, "lib", "test-plugins", name+".so") }

// theText is what the C API says for these settings.
func theText(t testing.TB, temperature float32, seed uint64, n int) (ids []int32) {
	t.Helper()
	out, err := exec.Command(built(t, "bin", "conformance_tokens"), models("demo.aerie"),
		strconv.FormatFloat(float64(temperature), 'g', -1, 32), strconv.FormatUint(seed, 10), strconv.Itoa(n)).Output()
	for _, id := range strings.Fields(string(must(t, out, err))) {
		n, err := strconv.Atoi(id)
		ids = append(ids, int32(must(t, n, err)))
	}
	return ids
}

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func openRuntime(t testing.TB) *Runtime {
	t.Helper()
	r, err := NewRuntime(&RuntimeOptions{Threads: 1})
	must(t, r, err)
	t.Cleanup(func() { r.Close() })
	if err := r.LoadPlugins(""); err != nil {
		t.Fatal(err)
	}
	return r
}

func openDemo(t testing.TB) *Model {
	t.Helper()
	m, err := OpenModel(ctx, openRuntime(t), models("demo.aerie"), nil)
	must(t, m, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func openEagle(t testing.TB, m *Model) *Drafter {
	t.Helper()
	d, err := m.OpenDrafter(ctx, DrafterOptions{Package: models("demo-eagle.aerie")})
	must(t, d, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func openTokenizer(t testing.TB, m *Model) *Tokenizer {
	t.Helper()
	tokenizer, err := m.Tokenizer()
	must(t, tokenizer, err)
	t.Cleanup(func() { tokenizer.Close() })
	return tokenizer
}

// settings draft with a chain, as auto does only where that pays.
func settings(d *Drafter, temperature float32, seed uint64) *SessionOptions {
	return &SessionOptions{Drafter: d, Sampling: Sampling{Temperature: temperature, Seed: seed},
		Tree: Tree{Policy: TreeChain, Nodes: 3}, IgnoreEOS: true}
}

func start(t testing.TB, m *Model, o *SessionOptions, prompt ...int32) *Session {
	t.Helper()
	s, err := m.NewSession(o)
	must(t, s, err)
	t.Cleanup(func() { s.Close() })
	if err := s.Append(prompt...); err != nil {
		t.Fatal(err)
	}
	return s
}

// take generates n tokens.
func take(t testing.TB, s *Session, n int) (ids []int32) {
	t.Helper()
	g := s.Generate(ctx, n)
	for g.Next() {
		ids = append(ids, g.Token().ID)
	}
	if g.Err() != nil {
		t.Fatal(g.Err())
	}
	return ids
}

func isText(t testing.TB, what string, got, want []int32) {
	t.Helper()
	same := len(got) == len(want) && len(got) > 0
	for i := 0; same && i < len(got); i++ {
		same = got[i] == want[i]
	}
	if !same {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
