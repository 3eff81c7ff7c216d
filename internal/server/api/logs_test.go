package api

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"fairway/test/files"
)

// The end of a log is that of what has come so far where the whole is not there yet.
func TestEndOfALog(t *testing.T) {
	folder := t.TempDir()
	t1 := &tail{whole: filepath.Join(folder, "7.out"), live: filepath.Join(folder, "7.out.live")}
	skips := func(last, want int64) {
		t.Helper()
		t1.offset = 0
		if t1.skipTo(last); t1.offset != want {
			t.Errorf("the last %d bytes begin at byte %d, not %d", last, t1.offset, want)
		}
	}
	skips(3, 0)
	files.Write(t, t1.live, "12345")
	skips(3, 2)
	skips(9, 0)
	skips(0, 0)
	files.Write(t, t1.whole, "12345678")
	skips(3, 5)
}

// Whoever looks while the whole takes the place of what had come finds one of them.
func TestALogIsFoundWhileItBecomesWhole(t *testing.T) {
	folder := t.TempDir()
	t1 := &tail{whole: filepath.Join(folder, "7.out"), live: filepath.Join(folder, "7.out.live")}
	for range 500 {
		files.Write(t, t1.live, "text")
		var becomes sync.WaitGroup
		becomes.Go(func() {
			if err := os.Rename(t1.live, t1.whole); err != nil {
				t.Error(err)
			}
		})
		file, err := t1.open()
		if err != nil {
			t.Fatal(err)
		}
		_ = file.Close()
		becomes.Wait()
		if err := os.Remove(t1.whole); err != nil {
			t.Fatal(err)
		}
	}
}
