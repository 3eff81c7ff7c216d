package pilot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
	"fairway/internal/storage/served"
)

// keepLog copies the file under log of an attempt that failed to the folder of
// what attempts print, since outputs of such an attempt are not stored.
func (p *pilot) keepLog(a *attempt) {
	if a.GetPayload().GetLog() == "" || !a.failed() || !a.begun || a.Slot == nil {
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
	copied, err := io.Copy(to, io.LimitReader(from, p.cfg.LogBytes))
	if info, failed := from.Stat(); err == nil && failed == nil && info.Size() > copied {
		_, err = to.WriteString(process.CutNotice)
	}
	return errors.Join(err, to.Close())
}

// logTail is the end of the file under log.
func (a *attempt) logTail() string {
	if a.GetPayload().GetLog() == "" {
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

// sendLogs brings what an attempt has printed to the server, where the folder for
// that is not shared.
func (p *pilot) sendLogs(a *attempt) {
	if !p.sendsLogs {
		return
	}
	for _, stream := range []string{"out", "err", "log"} {
		name := logName(a.GetAttempt(), stream)
		path := filepath.Join(p.cfg.LogDir, name)
		if _, err := os.Lstat(path); err != nil {
			continue
		}
		ctx := served.WithTicket(p.jobs, served.LogPattern(a.GetAttempt()), a.GetLogTicket())
		if err := p.stage.Storage.Put(ctx, path, served.LogScheme+":"+name); err != nil {
			a.Note(fmt.Sprintf("what it printed did not reach the server: %v", err))
			continue
		}
		_ = os.Remove(path)
	}
}
