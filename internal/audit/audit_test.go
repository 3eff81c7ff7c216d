package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var all = func(*Entry) bool { return true }

func opened(t *testing.T, size int64, files int) *Log {
	t.Helper()
	l, err := open(filepath.Join(t.TempDir(), "audit"), size, files)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func add(t *testing.T, l *Log, e Entry) {
	t.Helper()
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
}

// What was written is read again, the newest first, after another process has gone on with the log,
// and a line that was cut does no harm.
func TestEntriesStay(t *testing.T) {
	l := opened(t, FileSize, Files)
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for i := range 5 {
		add(t, l, Entry{At: at, User: "ada", Call: fmt.Sprint("Call", i), Outcome: Done, About: strings.Repeat("é", 1000)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Entry{Call: "x"}); err == nil {
		t.Error("a closed log takes an entry")
	}
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.WriteString(`{"at":"2026-11-2`)
	_ = file.Close()
	if l, err = Open(l.path); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	add(t, l, Entry{At: at, User: "bob", Call: "Call5", Outcome: "not_found"})
	entries, more, err := l.Read(3, all)
	if err != nil || len(entries) != 3 || !more || entries[0].User != "bob" || entries[2].Call != "Call3" ||
		len(entries[2].About) > MaxText+3 || strings.ContainsRune(entries[2].About, '\uFFFD') {
		t.Errorf("%v, %v, %v", entries, more, err)
	}
	entries, more, err = l.Read(100, func(e *Entry) bool { return e.User == "ada" })
	if err != nil || len(entries) != 5 || more {
		t.Errorf("%d entries, %v, %v", len(entries), more, err)
	}
	if info, err := os.Stat(l.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// The log has a limit, and keeps the newest entries.
func TestLogIsBounded(t *testing.T) {
	l := opened(t, 1000, 3)
	for i := range 500 {
		add(t, l, Entry{Call: fmt.Sprint(i), Outcome: Done})
	}
	entries, _, err := l.Read(1000, all)
	if err != nil || len(entries) < 20 || entries[0].Call != "499" {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	for i, e := range entries {
		if e.Call != fmt.Sprint(499-i) {
			t.Fatalf("entry %d is of call %s", i, e.Call)
		}
	}
	files, err := os.ReadDir(filepath.Dir(l.path))
	if err != nil || len(files) != 3 {
		t.Errorf("%v, %v", files, err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Size() > 1000 {
			t.Errorf("%s has %d bytes, %v", f.Name(), info.Size(), err)
		}
	}
}

// Who is refused 100,000 times pushes nothing out, and the number is known.
func TestRefusalsAreCounted(t *testing.T) {
	l := opened(t, 64<<10, 2)
	at := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	add(t, l, Entry{At: at, User: "ada", Call: "Submit", Outcome: Done})
	for i := range 100_000 {
		add(t, l, Entry{At: at.Add(time.Duration(i) * time.Microsecond), Call: "ListRuns", Outcome: "unauthenticated",
			Refused: true})
	}
	add(t, l, Entry{At: at.Add(time.Hour), Call: "ListRuns", Outcome: "unauthenticated", Refused: true})
	entries, more, err := l.Read(1000, all)
	if err != nil || more {
		t.Fatal(more, err)
	}
	refused, last := int64(0), entries[len(entries)-1]
	for _, e := range entries[:len(entries)-1] {
		refused += 1 + e.Repeated
	}
	if refused != 100_001 || last.User != "ada" || len(entries) > Refusals+5 {
		t.Errorf("%d refusals in %d entries, and %v before them", refused, len(entries), last)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"at":"2026-11-27T12:00:00Z","call":"Cancel","outcome":"ok"}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := decode(line)
		if !ok {
			if e != (Entry{}) {
				t.Errorf("%v of a line that is none", e)
			}
			return
		}
		written, err := json.Marshal(e)
		if err != nil || e.Call == "" {
			t.Fatalf("%+v of %q: %v", e, line, err)
		}
		again, ok := decode(written)
		if rewritten, err := json.Marshal(again); !ok || err != nil || !bytes.Equal(rewritten, written) {
			t.Errorf("%q is written as %q and then as %q, %v", line, written, rewritten, err)
		}
	})
}
