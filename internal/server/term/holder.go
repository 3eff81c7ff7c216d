package term

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/access"
	"fairway/internal/disk"
	"fairway/internal/server/folder"
)

// Names in the folder of terms.
const (
	termEnding    = ".term"
	asksEnding    = ".asks"
	pendingName   = "pending"
	maxTermFile   = access.MaxConnectionFile
	digitsOfTerms = 8
)

// Holder is the server of a term, as its file describes it.
type Holder struct {
	Number  int    `json:"-"`
	State   string `json:"state"`   // the identity of the state
	Machine string `json:"machine"` // where it runs: disk.Machine
	Host    string `json:"host"`    // the name of that, for people
	// Launch and Site are those of the batch job that the server is; empty where it is none.
	Launch string `json:"launch,omitempty"`
	Site   string `json:"site,omitempty"`
	Beat   uint64 `json:"beat"`
	Ended  bool   `json:"ended,omitempty"` // in order: nothing of it is left
	// Successor is the launch to which the server gives the state when it asks.
	Successor string `json:"successor,omitempty"`
	// Connection is how people reach the server over the network; nil where they do not.
	Connection *access.Connection `json:"connection,omitempty"`
}

// Here is a server of the state with an identity that runs on this machine.
func Here(id string) Holder {
	host, _ := os.Hostname() // for people only
	return Holder{State: id, Machine: disk.Machine(), Host: host}
}

// Lives reports whether the server has not said that it has ended. It may be dead.
func (h *Holder) Lives() bool { return h.Number > 0 && !h.Ended }

// Elsewhere reports whether the server may live on another machine.
func (h *Holder) Elsewhere() bool { return h.Lives() && h.Machine != disk.Machine() }

// Used reports whether a state has terms.
func Used(state string) bool {
	_, err := os.Lstat(filepath.Join(state, folder.ServersName))
	return err == nil
}

// Last is the server of the last term of a state with an identity. Its Number is 0 where
// there is none. Terms of other identities came with a copy: of them only the number counts.
func Last(state, id string) (h Holder, err error) {
	number, err := lastNumber(state)
	if err != nil || number == 0 {
		return Holder{}, err
	}
	if id != "" {
		h, err = read(state, number)
	}
	if err == nil && (id == "" || h.State != id) {
		h = Holder{Number: number, Ended: true}
	}
	return h, err
}

func lastNumber(state string) (last int, err error) {
	entries, err := os.ReadDir(filepath.Join(state, folder.ServersName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for _, entry := range entries {
		if digits, is := strings.CutSuffix(entry.Name(), termEnding); is {
			if n, bad := strconv.Atoi(digits); bad == nil {
				last = max(last, n)
			}
		}
	}
	return last, err
}

func path(state string, number int, ending string) string {
	return filepath.Join(state, folder.ServersName, fmt.Sprintf("%0*d%s", digitsOfTerms, number, ending))
}

func read(state string, number int) (Holder, error) {
	h := Holder{Number: number}
	return h, readInto(path(state, number, termEnding), &h)
}

func readInto(file string, v any) error {
	text, err := access.ReadPrivate(file, maxTermFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is damaged (%w): when no server of this state runs, remove it", file, err)
	}
	return nil
}

func write(file string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return access.WritePrivate(file, append(text, '\n'))
}

// writeNew makes a file that must not be there yet, complete or not at all. Of several
// processes, on whatever machines, one succeeds; the others get fs.ErrExist.
func writeNew(file string, v any) error {
	fresh := fmt.Sprintf("%s.%s", file, rand.Text())
	if err := write(fresh, v); err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh) }()
	return linkNew(fresh, file)
}

// linkNew gives a file a name that must not be there yet. A network file system that got no
// answer asks its server once more, which may then say that the name is there: by this call.
func linkNew(fresh, file string) error {
	err := os.Link(fresh, file)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	ours, errOurs := os.Lstat(fresh)
	there, errThere := os.Lstat(file)
	if errOurs == nil && errThere == nil && os.SameFile(ours, there) {
		return nil
	}
	return err
}

// Pending is a batch job that was submitted, or is about to be, to be the next server.
type Pending struct {
	State  string `json:"state"` // the identity of the state
	Launch string `json:"launch"`
	Site   string `json:"site"`
}

// PendingFile says which launch is pending. Without it, none is.
func PendingFile(state string) string {
	return filepath.Join(state, folder.ServersName, pendingName)
}

// Announce names a launch before it is submitted. Where another one is pending, it
// returns that, and false.
func Announce(state string, p Pending) (Pending, bool, error) {
	if err := os.MkdirAll(filepath.Join(state, folder.ServersName), 0o700); err != nil {
		return p, false, err
	}
	file := PendingFile(state)
	for {
		err := writeNew(file, p)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return p, err == nil, err
		}
		there, err := PendingOf(state, p.State)
		switch {
		case err != nil:
			return p, false, err
		case there.Launch != "":
			return there, false, nil
		}
		// It has gone meanwhile, or is of the state that this one is a copy of.
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, false, err
		}
	}
}

// PendingOf is the launch that is pending; it has no name where there is none.
func PendingOf(state, id string) (p Pending, err error) {
	err = readInto(PendingFile(state), &p)
	if errors.Is(err, fs.ErrNotExist) {
		return Pending{}, nil
	}
	if p.State != id {
		p = Pending{}
	}
	return p, err
}

// Forget says that a launch is not pending any more: it has begun, or will not come.
func Forget(state, id, launch string) error {
	p, err := PendingOf(state, id)
	if err != nil || p.Launch != launch {
		return err
	}
	if err := os.Remove(PendingFile(state)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
