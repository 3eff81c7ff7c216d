package served

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

// overtaken stores a file under a name right after it was seen that nothing has it.
type overtaken struct {
	storage.Element
	store func()
}

func (o *overtaken) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	body, err := o.Element.Open(ctx, pfn)
	if store := o.store; store != nil && err != nil {
		o.store = nil
		store()
	}
	return body, err
}

// Of two that write other contents under one name, the later one leaves nothing behind.
func TestWhoIsOvertakenLeavesNothing(t *testing.T) {
	n := newNode(t, nil)
	n.config.Element = &overtaken{n.element, func() { n.store(t, "x", "one") }}
	n.restart()
	err := n.listen(t).pilot(t, "launch", nil).Put(t.Context(), local(t, "two"), "state:x")
	if !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if left := n.unfinished(t); len(left) > 0 {
		t.Error("left behind:", left)
	}
}

// What was under way when a pilot was cut is not written while the pilot is told what the
// server has: it would be sent again.
func TestWhoWasCutIsToldAllThatCame(t *testing.T) {
	n := newNode(t, nil).listen(t)
	e := n.pilot(t, "launch", nil)
	contents := storagetest.Contents(10)
	q := &request{pfn: "state:x", file: file{size: int64(len(contents)), mode: 0o644}}
	var err error
	if q.file.sums, err = sumsOf(strings.NewReader(contents)); err != nil {
		t.Fatal(err)
	}
	uploads := n.handler.Load().uploads
	body, sent := io.Pipe()
	ctx := e.with(t.Context(), Write, q.pfn)
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, e.url+writePath, body)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(r.Header, q.file)
	r.ContentLength = q.file.size
	go func() { _, _ = e.ask(ctx, r, q.pfn, http.StatusCreated) }()
	if _, err := sent.Write([]byte(contents[:4])); err != nil {
		t.Fatal(err)
	}
	for len(uploads.all()) == 0 {
		runtime.Gosched() // the request comes to the server
	}
	s := &sending{e: e.Element, pfn: q.pfn, file: q.file}
	if complete, err := s.askHeld(ctx); complete || err != nil {
		t.Fatal(complete, err)
	}
	if one := uploads.all(); len(one) > 0 {
		t.Error("the request that was cut still writes")
	}
	_ = sent.Close()
}
