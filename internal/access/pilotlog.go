package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

const (
	// PilotLogPath is where a pilot tells its server what it says itself.
	PilotLogPath = "/fairway/pilot-log"
	// MaxPilotLog is how much of that a server keeps of each launch, in bytes: the end.
	MaxPilotLog = 256 << 10

	maxLastWords = 4 << 10
)

// TellLog sends the end of a file to the server, as what the pilot of the launch says, with
// some last words. It takes BodyTime at most.
func (l *Line) TellLog(ctx context.Context, path, last string) error {
	ctx, cancel := context.WithTimeout(ctx, BodyTime)
	defer cancel()
	last = last[:min(len(last), maxLastWords)]
	text, err := endOf(path, MaxPilotLog-len(last))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, BaseURL+PilotLogPath,
		bytes.NewReader(append(text, last...)))
	if err != nil {
		return err
	}
	client := l.Client(1)
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("the server does not take what this pilot says: %s", answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}

// endOf reads the last bytes of a file, from the begin of a line on.
func endOf(path string, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	skipped := max(0, info.Size()-int64(most))
	text, err := io.ReadAll(io.NewSectionReader(file, skipped, int64(most)))
	if skipped > 0 {
		if _, whole, cut := bytes.Cut(text, []byte{'\n'}); cut {
			text = whole
		}
	}
	return text, err
}
