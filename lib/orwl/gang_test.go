package orwl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fairway/lib/orwl/orwltest"
)

// testGang writes the files of a gang as a pilot does, and returns their paths. The tasks have the
// folders in turn.
func testGang(t testing.TB, tasks int, attempt string, folders ...string) []string {
	t.Helper()
	paths, err := orwltest.Gang{Tasks: tasks, Attempt: attempt, Folders: folders}.Write(t.TempDir())
	must(t, err)
	return paths
}

// Tasks find each other's locations, by addresses and keys that they get with their environment.
func TestGangJoins(t *testing.T) {
	const n = 3
	paths := testGang(t, n, "first")
	var all sync.WaitGroup
	for k := range n {
		all.Go(func() {
			if err := readNeighbour(paths[k]); err != nil {
				t.Errorf("task %d: %v", k, err)
			}
		})
	}
	all.Wait()
}

// readNeighbour serves a number, and reads that of the next task.
func readNeighbour(path string) error {
	m, err := joinGang(background, path)
	if err != nil {
		return err
	}
	defer m.Close()
	own, err := New(fmt.Sprint("number ", m.Process()), 8)
	if err != nil {
		return err
	}
	own.Initialize(func(b []byte) { b[0] = byte(m.Process()) })
	if err := m.Serve(background, own); err != nil {
		return err
	}
	if m.Serve(background) == nil {
		return errors.New("it serves twice")
	}
	next := (m.Process() + 1) % m.Processes()
	r, err := m.Resource(background, fmt.Sprint("number ", next))
	if err != nil {
		return err
	}
	var h Handle
	if err := h.ReadRequest(r); err != nil {
		return err
	}
	err = DoReading(background, &h, func(b []byte) error {
		if int(b[0]) != next {
			return fmt.Errorf("task %d has %d", next, b[0])
		}
		return nil
	})
	return errors.Join(err, m.Finish(background))
}

// A process without a gang learns what to do, and one that gets a broken file what is wrong.
func TestJoinWithoutGang(t *testing.T) {
	t.Setenv(GangVariable, "")
	if _, err := Join(background); !errors.Is(err, ErrNoGang) || !strings.Contains(err.Error(), "tasks:") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "gang.json")
	t.Setenv(GangVariable, path)
	if _, err := Join(background); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		`{"tasks": 2, "task": 2}`:                                             "no task 2 among 2",
		`{"tasks": 2, "task": 1, "attempt": "a"}`:                             "0 of 2 tasks",
		`{"tasks": 1, "attempt": "a", "members": [{"host": "h"}]}`:            "a port",
		`{"tasks": 1, "attempt": "a", "members": [{"host":"h","ports":[0]}]}`: "no port 0",
		`{"tasks": 1, "members": [{"host": "h", "ports": [1]}]}`:              "the attempt",
		`{`: "unexpected end",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := Join(background); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A task of an attempt that is over, which goes on where nobody can end it, is not let in by one of
// the next attempt, and neither is who has no certificate of the gang.
func TestOtherAttemptsAreRefused(t *testing.T) {
	old := testGang(t, 2, "old")
	for name, other := range map[string]string{"another attempt": "new", "another authority": "old"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(old[0])
			must(t, err)
			g, err := parseGang(text)
			must(t, err)
			g.Attempt = other
			if other == "old" {
				g.Cert, g.Key, err = orwltest.WriteKeys(t.TempDir())
				must(t, err)
				g.CA = g.Cert
			}
			text, err = json.Marshal(g)
			must(t, err)
			path := filepath.Join(t.TempDir(), "gang.json")
			must(t, os.WriteFile(path, text, 0o600))
			m, err := joinGang(background, path)
			must(t, err)
			late, err := joinGang(background, old[1])
			must(t, err)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			var both sync.WaitGroup
			for _, m := range []*Member{m, late} {
				both.Go(func() {
					defer cancel() // who is left waits for a task that comes no more
					if m.Serve(ctx) == nil {
						t.Error("it was let in")
						m.Close()
					}
				})
			}
			both.Wait()
		})
	}
}

func FuzzGang(f *testing.F) {
	f.Add([]byte(`{"tasks":1,"task":0,"attempt":"a","members":[{"task":0,"host":"h","ports":[1,2]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		g, err := parseGang(text)
		if err == nil && (g.Task >= g.Tasks || len(g.addresses(0)) != g.Tasks) {
			t.Errorf("%+v", g)
		}
	})
}
