package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"fairway/internal/disk"
)

// computing is the program of the job. A step hashes stepBytes, which is the work, and then links a
// number to that of the step before, so that a step which was left out or done twice in one result
// shows.
type computing struct {
	steps int64
	every time.Duration // between two times at which it saves; 0: when it gets SIGTERM
	log   string
}

// stepBytes is what a step hashes: some hundredths of a second.
const stepBytes = 16 << 20

// stateName is the file in the checkpoint.
const stateName = "state"

// state is where the program is.
type state struct {
	step int64
	link [sha256.Size]byte
}

// next is the state after one more step.
func (s state) next() state {
	return state{s.step + 1, sha256.Sum256(binary.LittleEndian.AppendUint64(s.link[:], uint64(s.step)))}
}

// result is what the program writes at the end.
func (s state) result() string { return fmt.Sprintf("%d %s\n", s.step, hex.EncodeToString(s.link[:])) }

func (s state) save(folder string) error {
	text := binary.LittleEndian.AppendUint64(nil, uint64(s.step))
	return disk.Replace(filepath.Join(folder, stateName), append(text, s.link[:]...), 0o600)
}

// loadState is the zero state where nothing was saved.
func loadState(folder string) (s state, err error) {
	text, err := os.ReadFile(filepath.Join(folder, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil && len(text) != 8+len(s.link) {
		err = fmt.Errorf("the state has %d bytes", len(text))
	}
	if err != nil {
		return s, err
	}
	s.step = int64(binary.LittleEndian.Uint64(text))
	copy(s.link[:], text[8:])
	return s, nil
}

// work is one step.
func work(buffer []byte) { sha256.Sum256(buffer) }

// run computes until the last step, or until it is told to end.
func (c *computing) run(folder, out string) error {
	s, err := loadState(folder)
	if err != nil {
		return err
	}
	told := make(chan os.Signal, 1)
	if c.every == 0 {
		signal.Notify(told, syscall.SIGTERM)
	}
	attempt, err := os.Create(filepath.Join(c.log, os.Getenv("FAIRWAY_ATTEMPT")))
	if err != nil {
		return err
	}
	defer attempt.Close()
	buffer, began := make([]byte, stepBytes), time.Now()
	first, saved := s.step, began
	for s.step < c.steps {
		work(buffer)
		s = s.next()
		if _, err := attempt.WriteAt(stretch{s.step - first, time.Since(began)}.text(), 0); err != nil {
			return err
		}
		select {
		case <-told:
			return errors.Join(s.save(folder), errors.New("told to end"))
		default:
		}
		if c.every > 0 && time.Since(saved) >= c.every {
			if err := s.save(folder); err != nil {
				return err
			}
			saved = time.Now()
		}
	}
	return os.WriteFile(out, []byte(s.result()), 0o666)
}

// stretch is what one attempt has computed so far.
type stretch struct {
	steps int64
	took  time.Duration
}

// text has always the same length.
func (s stretch) text() []byte { return fmt.Appendf(nil, "%16d %16d\n", s.steps, s.took) }

// stretches are those of all attempts, together.
func stretches(log string) (sum stretch, err error) {
	attempts, err := os.ReadDir(log)
	if err != nil {
		return sum, err
	}
	for _, a := range attempts {
		text, err := os.ReadFile(filepath.Join(log, a.Name()))
		if err != nil {
			return sum, err
		}
		var s stretch
		if len(text) > 0 { // one that was ended in its first step has none
			if _, err := fmt.Sscan(string(text), &s.steps, &s.took); err != nil {
				return sum, fmt.Errorf("attempt %s: %w", a.Name(), err)
			}
		}
		sum.steps += s.steps
		sum.took += s.took
	}
	return sum, nil
}
