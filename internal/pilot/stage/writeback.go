package stage

import (
	"cmp"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"fairway/internal/disk"
	"fairway/internal/logical"
	"fairway/internal/pilot/process"
	"fairway/internal/storage"
)

// Writeback has the outputs of a command written to disk while it still writes them, so that little
// is left when it has ended: the disk does nothing else meanwhile, and the attempt ends only when
// its outputs are durable. It makes nothing durable itself, and takes no error from who does: the
// kernel keeps one until somebody waits for the file, as stage-out does.
//
// Only outputs of which stage-out makes links are written so: others are read, and need no disk
// here. No byte is written early twice, so a program that changes in place what it has written does
// not make more work for the disk than once.
type Writeback struct {
	ar      *Area
	a       *Execution
	do      func(func()) // starts a goroutine
	looked  bool
	outputs []growing
	since   time.Time // when one of them was last seen to have grown
	busy    atomic.Bool
	begin   func(f *os.File, from, to int64) // disk.BeginFlush, but for tests
}

type growing struct {
	path string // in the sandbox
	till int64
}

type piece struct {
	file     *os.File
	from, to int64
}

const (
	// writebackPiece is how much an output has to grow until that is written, in bytes: less is
	// soon written when the command has ended.
	writebackPiece = 8 << 20
	// writebackRest bounds how long an output is not looked at that does not grow.
	writebackRest = time.Minute
)

// Writeback is that of an attempt whose command runs. What blocks is done by goroutines that do
// starts.
func (ar *Area) Writeback(a *Execution, do func(func())) *Writeback {
	return &Writeback{ar: ar, a: a, do: do, begin: disk.BeginFlush}
}

// Look has written what the outputs have grown by, and returns when to look again; 0: never. The
// sandbox is that of the attempt until it returns. It does not block. One goroutine at a time
// calls it.
func (w *Writeback) Look(now time.Time) time.Duration {
	if !w.looked {
		w.looked, w.outputs, w.since = true, w.growing(), now
	}
	if len(w.outputs) == 0 {
		return 0
	}
	if w.busy.Load() { // the disk does not keep up: it has enough to do
		return process.WatchInterval
	}
	if pieces := w.grown(); len(pieces) > 0 {
		w.since = now
		w.busy.Store(true)
		w.do(func() { w.write(pieces) })
	}
	return min(writebackRest, max(process.WatchInterval, now.Sub(w.since)))
}

// growing are the outputs that are looked at. Of many each is small, and to look at them costs more
// than it saves.
func (w *Writeback) growing() (outputs []growing) {
	promised := w.a.GetOutputs()
	prefix := cmp.Or(w.a.GetStorage(), w.ar.Prefix)
	if len(promised) >= ManyOutputs || w.ar.Reach != nil || !strings.HasPrefix(prefix, storage.StateScheme+":") {
		return nil
	}
	if own := w.ar.mount.of(w.ar.Folder); own == 0 || own != storage.MountOf(w.ar.Roots.State) {
		return nil
	}
	for _, o := range promised {
		path, err := w.a.PathOf(o.GetLfn())
		if err == nil && !o.GetPattern() && !o.GetCacheOnly() && !logical.IsFolder(o.GetLfn()) {
			outputs = append(outputs, growing{path: path})
		}
	}
	return outputs
}

// grown opens the outputs of which there is enough to write.
func (w *Writeback) grown() (pieces []piece) {
	for i := range w.outputs {
		o := &w.outputs[i]
		info, err := w.a.Slot.dir.Lstat(o.path)
		if err != nil || !info.Mode().IsRegular() || info.Size()-o.till < writebackPiece {
			continue
		}
		f, err := w.a.Slot.dir.Open(o.path)
		if err != nil {
			continue // stage-out says what is the matter
		}
		pieces = append(pieces, piece{f, o.till, info.Size()})
		o.till = info.Size()
	}
	return pieces
}

func (w *Writeback) write(pieces []piece) {
	for _, p := range pieces {
		w.begin(p.file, p.from, p.to)
		_ = p.file.Close()
	}
	w.busy.Store(false)
}
