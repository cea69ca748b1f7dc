package aerie

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var ctx = context.Background()

// models is the folder of the demo packages.
func models(name string) string { return filepath.Join("..", "..", "samples", "models", name) }

func must[T any](t testing.TB, value T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func newRuntime(t testing.TB) *Runtime {
	t.Helper()
	r, err := NewRuntime(&RuntimeOptions{Threads: 1})
	must(t, r, err)
	t.Cleanup(func() { r.Close() })
	if err := r.LoadPlugins(""); err != nil {
		t.Fatal(err)
	}
	return r
}

func demo(t testing.TB) *Model {
	t.Helper()
	m, err := OpenModel(ctx, newRuntime(t), models("demo.aerie"), nil)
	must(t, m, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func eagle(t testing.TB, m *Model) *Drafter {
	t.Helper()
	d, err := m.OpenDrafter(DrafterOptions{Package: models("demo-eagle.aerie")})
	must(t, d, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// chain drafts without measuring passes first, as auto does.
func chain(d *Drafter, seed uint64) *SessionOptions {
	return &SessionOptions{Drafter: d, Sampling: Sampling{Temperature: 0.7, Seed: seed},
		Tree: Tree{Policy: TreeChain, Nodes: 3}, IgnoreEOS: true}
}

func newSession_(t testing.TB, m *Model, o *SessionOptions, prompt ...int32) *Session {
	t.Helper()
	s, err := m.NewSession(o)
	must(t, s, err)
	t.Cleanup(func() { s.Close() })
	if err := s.Append(prompt...); err != nil {
		t.Fatal(err)
	}
	return s
}

var prompt = []int32{0, 42, 300, 513}

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

func equal(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// command is the installed command line, beside the library that pkg-config finds.
func command(t *testing.T) string {
	t.Helper()
	prefix, err := exec.Command("pkg-config", "--variable=prefix", "aerie").Output()
	must(t, prefix, err)
	return filepath.Join(strings.TrimSpace(string(prefix)), "bin", "aerie")
}

// plugin is a misbehaving plugin of the tests build.
func plugin(t *testing.T, name string) string {
	t.Helper()
	folder := os.Getenv("AERIE_TEST_PLUGINS")
	if folder == "" {
		t.Skip("AERIE_TEST_PLUGINS is not set: the folder of the tests build's plugins (lib/test-plugins)")
	}
	return filepath.Join(folder, name+".so")
}
