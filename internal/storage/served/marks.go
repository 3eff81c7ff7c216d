package served

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"fairway/internal/disk"
	"fairway/internal/storage"
)

const (
	marksPath = Prefix + "marks"
	seenPath  = Prefix + "seen"
)

// A Mark is a file that a server has put into a folder. A pilot that finds the
// same text there reaches that folder.
type Mark struct {
	Prefix string       `json:"prefix"` // how the PFNs begin that are in the folder
	PFN    string       `json:"pfn"`    // of the file
	Text   string       `json:"text"`   // nobody can guess it
	Info   storage.Info `json:"info"`   // as the server sees the file
}

// The time of a mark has no round number of nanoseconds, so that a file system
// that drops them shows.
const oddNanoseconds = 123_456_789

// NewMark puts a mark into a folder beneath that of the PFNs that begin in some way
// (".": into that itself), in the place of the one that is there.
func NewMark(roots storage.Roots, prefix, beneath string) (Mark, error) {
	m := Mark{
		Prefix: prefix, PFN: storage.Join(prefix, path.Join(beneath, storage.MarkName)), Text: rand.Text() + rand.Text(),
	}
	path, err := roots.Path(m.PFN)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o777)
	}
	if err != nil {
		return m, err
	}
	unfinished := storage.Unfinished(path)
	odd := time.Unix(time.Now().Unix(), oddNanoseconds)
	err = os.WriteFile(unfinished, []byte(m.Text), 0o644)
	if err == nil {
		err = os.Chtimes(unfinished, odd, odd)
	}
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		_ = os.Remove(unfinished)
		return m, err
	}
	info, err := os.Lstat(path)
	if err == nil {
		m.Info = storage.InfoOf(info)
	}
	return m, err
}

// Reach is what a pilot has proved of a folder that it may share with its server.
type Reach struct {
	Reads  bool // it reads what the server has written
	Writes bool // and the server what it writes
	// Exact says that inode and time of modification are those that the server sees.
	Exact bool
}

// Prove finds out whether the places of a pilot hold the folder of a mark.
func (e *Element) Prove(ctx context.Context, roots storage.Roots, m Mark) (Reach, error) {
	path, err := roots.Path(m.PFN)
	if err != nil {
		return Reach{}, nil // the pilot was given no such folder
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != m.Text {
		return Reach{}, nil
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Reach{}, nil
	}
	now := storage.InfoOf(info)
	r := Reach{Reads: true, Exact: now.Inode == m.Info.Inode && now.ModTime.Equal(m.Info.ModTime)}
	r.Writes, err = e.proveWriting(ctx, roots, m)
	return r, err
}

func (e *Element) proveWriting(ctx context.Context, roots storage.Roots, m Mark) (bool, error) {
	text := rand.Text()
	ending := "-" + text[:8]
	path, err := roots.Path(m.PFN + ending)
	if err != nil {
		return false, nil
	}
	defer func() { _ = os.Remove(path) }()
	if os.WriteFile(path, []byte(text), 0o644) != nil || disk.Sync(path) != nil || disk.Sync(filepath.Dir(path)) != nil {
		return false, nil
	}
	return e.seen(ctx, m.PFN, ending, text)
}

// Marks asks for the marks of the server.
func (e *Element) Marks(ctx context.Context) (marks []Mark, err error) {
	err = e.patiently(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+marksPath, nil)
		if err != nil {
			return err
		}
		answer, err := e.ask(ctx, r, "marks", http.StatusOK)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxMarks))
		if err != nil {
			return &cutError{"marks", err}
		}
		return json.Unmarshal(text, &marks)
	})
	return marks, err
}

// maxMarks bounds an answer with marks, and maxSeen the text of a pilot, in bytes.
const (
	maxMarks = 1 << 20
	maxSeen  = 1 << 10
)

// seen asks whether the server sees a text that this pilot has written.
func (e *Element) seen(ctx context.Context, pfn, ending, text string) (yes bool, err error) {
	err = e.patiently(ctx, func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+seenPath, strings.NewReader(text))
		if err != nil {
			return err
		}
		r.Header.Set(endingHeader, ending)
		answer, err := e.ask(ctx, r, pfn, http.StatusNoContent, http.StatusNotFound)
		if err != nil {
			return err
		}
		yes = answer.StatusCode == http.StatusNoContent
		return answer.Body.Close()
	})
	return yes, err
}

const endingHeader = "Fairway-Ending"

// tellMarks answers what folders there may be to share.
func (h *Handler) tellMarks(w http.ResponseWriter) {
	text, err := json.Marshal(h.Marks)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// tellSeen answers whether what a pilot has written beside a mark is there. It
// tells nothing of any other file.
func (h *Handler) tellSeen(w http.ResponseWriter, r *http.Request) {
	pfn, ending := r.URL.Query().Get(pfnKey), r.Header.Get(endingHeader)
	known := slices.ContainsFunc(h.Marks, func(m Mark) bool { return m.PFN == pfn })
	if !known || len(ending) != 9 || ending[0] != '-' ||
		strings.Trim(ending[1:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
		http.Error(w, "a mark of this server is wanted, and not "+strconv.Quote(storage.Shown(pfn)), http.StatusBadRequest)
		return
	}
	told, err := io.ReadAll(io.LimitReader(r.Body, maxSeen))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	there, err := h.beginning(r.Context(), pfn+ending)
	if err != nil || !bytes.Equal(there, told) {
		http.Error(w, "it is not there", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) beginning(ctx context.Context, pfn string) ([]byte, error) {
	body, err := h.Element.Open(ctx, pfn)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(body, maxSeen+1))
	return text, errors.Join(err, body.Close())
}
