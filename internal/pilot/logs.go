package pilot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
	"fairway/internal/storage/served"
)

func (p *pilot) keepLog(a *attempt) {
	if a.Payload.GetLog() == "" || !a.failed() || !a.begun || a.Slot == nil {
		return
	}
	if err := p.copyLog(a); err != nil {
		a.Note("its log is lost: " + err.Error())
	}
}

func (p *pilot) copyLog(a *attempt) error {
	from, err := a.OpenLog()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	path := filepath.Join(p.cfg.LogDir, logName(a.GetAttempt(), "log"))
	to, err := process.CreateLog(path)
	if err != nil {
		return err
	}
	return errors.Join(process.CopyLog(to, from, p.cfg.LogBytes), to.Close())
}

func (a *attempt) logTail() string {
	if a.Payload.GetLog() == "" {
		return ""
	}
	f, err := a.OpenLog()
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	end := make([]byte, min(process.TailBytes, info.Size()))
	n, _ := f.ReadAt(end, info.Size()-int64(len(end)))
	return report.Legible(string(end[:n]))
}

// liveLogs is what of the streams of an attempt was sent while it ran.
type liveLogs struct {
	mu   sync.Mutex       // held while some is sent
	sent map[string]int64 // bytes of each stream; mu guards it

	// The pilot's mutex guards what follows.
	end   context.CancelFunc // of what is being sent
	ended bool               // the whole follows
}

// followLogs sends what attempts print while they run, where the folder for that is not
// shared, so that who follows it sees it soon.
func (p *pilot) followLogs(ctx context.Context) {
	for p.sched.Sleep(ctx, p.cfg.LogPause) == nil {
		var running []*attempt
		p.mu.Lock()
		for _, a := range p.known {
			if a.begun {
				running = append(running, a)
			}
		}
		p.mu.Unlock()
		for _, a := range running {
			p.sendGrown(ctx, a)
		}
	}
}

// liveBytes is how much of a stream goes to the server at a time.
const liveBytes = 1 << 20

// sendGrown sends what the streams of an attempt have grown by. That it does not arrive is
// of no account: the whole follows.
func (p *pilot) sendGrown(ctx context.Context, a *attempt) {
	ctx, cancel := context.WithCancel(served.WithPatternTicket(ctx, served.LogPattern(a.GetAttempt()), a.GetLogTicket()))
	defer cancel()
	p.mu.Lock()
	ended := a.logs.ended
	a.logs.end = cancel
	p.mu.Unlock()
	if ended {
		return
	}
	a.logs.mu.Lock()
	defer a.logs.mu.Unlock()
	for _, stream := range []string{"out", "err"} {
		path := filepath.Join(p.cfg.LogDir, logName(a.GetAttempt(), stream))
		from := a.logs.sent[stream]
		part := path + ".part"
		size, err := copyPart(path, part, from)
		if err == nil && size > 0 {
			err = p.stage.Storage.Put(ctx, part, served.LogPiece(a.GetAttempt(), stream, from))
			if a.logs.sent == nil {
				a.logs.sent = map[string]int64{}
			}
			switch {
			case err == nil:
				a.logs.sent[stream] = from + size
			case served.IsGap(err):
				a.logs.sent[stream] = 0
			}
		}
		_ = os.Remove(part)
	}
}

// copyPart copies what a file has beyond its first bytes, up to liveBytes.
func copyPart(path, part string, from int64) (size int64, err error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = io.Copy(out, io.NewSectionReader(in, from, liveBytes))
	return size, errors.Join(err, out.Close())
}

func (p *pilot) endLive(a *attempt) {
	p.mu.Lock()
	a.logs.ended = true
	if a.logs.end != nil {
		a.logs.end()
	}
	p.mu.Unlock()
	a.logs.mu.Lock() // what is being sent is broken off
	defer a.logs.mu.Unlock()
}

// sendLogs brings what an attempt has printed to the server, where the folder for
// that is not shared.
func (p *pilot) sendLogs(a *attempt) {
	if !p.sendsLogs {
		return
	}
	p.endLive(a)
	for _, stream := range []string{"out", "err", "log"} {
		name := logName(a.GetAttempt(), stream)
		path := filepath.Join(p.cfg.LogDir, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		ctx := served.WithPatternTicket(p.jobs, served.LogPattern(a.GetAttempt()), a.GetLogTicket())
		if err := p.stage.Storage.Put(ctx, path, served.LogScheme+":"+name); err != nil {
			a.Note(fmt.Sprintf("what it printed did not reach the server: %v", err))
			continue
		}
		_ = os.Remove(path)
	}
}
