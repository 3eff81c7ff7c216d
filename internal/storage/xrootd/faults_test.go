package xrootd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

func atOnce(context.Context, time.Duration) error { return nil }

// Whatever happens to connections, a file is right or not there.
func TestXRootDUnderFaults(t *testing.T) { underFaults(t, true) }

// The same where the programs do it, which begin at the beginning again.
func TestProgramsOfXRootDUnderFaults(t *testing.T) {
	defer func(before []string) { limits = before }(limits)
	limits = append(slices.Clip(limits), "XRD_STREAMERRORWINDOW=0", "XRD_CONNECTIONWINDOW=1", "XRD_REQUESTTIMEOUT=2",
		"XRD_STREAMTIMEOUT=2")
	underFaults(t, false)
}

func underFaults(t *testing.T, open bool) {
	address, _, store := storagetest.XRootD(t)
	proxy := storagetest.BeforeRoot(t, address)
	right := storagetest.Contents(3 << 20)
	local := storagetest.Local(t, right)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	secretFile := storagetest.Local(t, right) // of this machine; a server may know its size
	on := func(request uint16, answer func() (uint16, []byte, bool)) storagetest.RootFault {
		return storagetest.RootFault{Instead: func(asked uint16) (uint16, []byte, bool) {
			if asked == request {
				return answer()
			}
			return 0, nil, false
		}}
	}
	for name, one := range map[string]struct {
		fault     storagetest.RootFault
		times     int
		get, put  bool // must succeed
		forbidden bool // neither may
	}{
		"answers cut":        {fault: storagetest.RootFault{CutAnswers: 1 << 20}, times: 6, get: true, put: true},
		"answers always cut": {fault: storagetest.RootFault{CutAnswers: 1 << 20}, times: -1, get: open, put: true},
		"requests cut":       {fault: storagetest.RootFault{CutRequests: 1 << 20}, times: 3, get: true, put: true},
		"bytes changed":      {fault: storagetest.RootFault{FlipAnswers: true}, times: -1, put: true},
		"no space":           {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootError(codeNoSpace, "no space") }), times: -1, forbidden: true},
		"refused":            {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootError(codeDenied, "token expired") }), times: -1, forbidden: true},
		"sent to the server": {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootRedirection(int32(number), host) }), times: -1, get: true, put: true},
		"sent to a file":     {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootRedirection(-1, "file://localhost"+secretFile) }), times: -1, forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := fmt.Sprint(places.Add(1))
			if err := new(Element).Put(
				t.Context(), local, fmt.Sprintf("root://%s//store/%s/there", address, folder),
			); err != nil {
				t.Fatal(err)
			}
			meet := func() storage.Element { // with new connections
				e := new(Element)
				if !open {
					e.protocol.met(file{address: proxy.Address}, false)
				}
				t.Cleanup(e.Close)
				return storage.Retry(e, storage.DefaultTries, storage.DefaultBackoff, atOnce)
			}
			proxy.Do(one.times, one.fault)
			pfn := fmt.Sprintf("root://%s//store/%s/", proxy.Address, folder)
			got := filepath.Join(t.TempDir(), "got")
			_, err := meet().Get(t.Context(), pfn+"there", got)
			text, missing := os.ReadFile(got)
			if err == nil && (string(text) != right || one.forbidden) || err != nil &&
				(one.get || !errors.Is(missing, fs.ErrNotExist)) {
				t.Errorf("got %d bytes, %v", len(text), err)
			}
			proxy.Do(one.times, one.fault)
			err = meet().Put(t.Context(), local, pfn+"new")
			text, missing = os.ReadFile(filepath.Join(store, folder, "new"))
			if err == nil && (string(text) != right || one.forbidden) || err != nil &&
				(one.put || missing == nil && string(text) != right) {
				t.Errorf("put %d bytes, %v", len(text), err)
			}
		})
	}
	if text, err := os.ReadFile(secretFile); err != nil || string(text) != right {
		t.Errorf("a file of this machine was written to: %v", err)
	}
}

// A server closes connections that are kept. The next question goes over a new one.
func TestKeptConnectionsThatEnd(t *testing.T) {
	address, _, _ := storagetest.XRootD(t)
	proxy := storagetest.BeforeRoot(t, address)
	e := new(Element)
	t.Cleanup(e.Close)
	pfn := fmt.Sprintf("root://%s//store/%d", proxy.Address, places.Add(1))
	if err := e.Put(t.Context(), storagetest.Local(t, "x"), pfn); err != nil {
		t.Fatal(err)
	}
	e.Close()
	proxy.Do(3, storagetest.RootFault{CutAnswers: 300})
	for i := range 50 {
		if info, err := e.Stat(t.Context(), pfn); err != nil || info.Size != 1 {
			t.Fatalf("question %d: %+v, %v", i, info, err)
		}
	}
}

// A server that is overloaded when it is first met is one for everybody all the same.
func TestAnOverloadedServerIsNotClosed(t *testing.T) {
	address, _, _ := storagetest.XRootD(t)
	proxy := storagetest.BeforeRoot(t, address)
	proxy.Do(1, storagetest.RootFault{Instead: func(asked uint16) (uint16, []byte, bool) {
		if asked != askLogin {
			return 0, nil, false
		}
		return storagetest.RootError(3024, "overloaded")
	}})
	e := new(Element)
	t.Cleanup(e.Close)
	pfn := fmt.Sprintf("root://%s//store/missing", proxy.Address)
	if _, err := e.Stat(t.Context(), pfn); !storage.Temporary(err) {
		t.Errorf("while it is overloaded: %v", err)
	}
	if _, err := e.Stat(t.Context(), pfn); !errors.Is(err, fs.ErrNotExist) || !e.protocol.open[proxy.Address] {
		t.Errorf("later: %v; open: %v", err, e.protocol.open)
	}
}

// A server that wants to be asked again for ever gets an end, and not ever more questions.
func TestAServerThatAlwaysWantsToBeAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := &connection{net: near, in: bufio.NewReader(near)}
		asked := 0
		go func() {
			for request := make([]byte, 24); ; asked++ {
				if _, err := io.ReadFull(far, request); err != nil {
					return
				}
				answer := binary.BigEndian.AppendUint16(slices.Clone(request[:2]), answerWait)
				if _, err := far.Write(append(answer, 0, 0, 0, 4, 0, 0, 0, 1)); err != nil {
					return
				}
			}
		}()
		begun := time.Now()
		_, err := c.ask(t.Context(), QueryTimeout, askQuery, nil, nil)
		if took := time.Since(begun); !storage.Temporary(err) || took < QueryTimeout || took > QueryTimeout+2*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		_ = errors.Join(near.Close(), far.Close())
		synctest.Wait()
		if most := int(QueryTimeout/time.Second) + 20; asked > most {
			t.Errorf("it was asked %d times, which wants to be asked every second; at most %d", asked, most)
		}
	})
}

// asking is an element whose questions go over one connection.
type asking struct {
	storage.Element
	connection
}

func (a *asking) Stat(ctx context.Context, _ string) (storage.Info, error) {
	_, err := a.ask(ctx, QueryTimeout, askStat, nil, nil)
	return storage.Info{}, err
}

// Those who wait are told in each SilentTime of a server that takes a request and answers nothing.
func TestASilentServerIsNamedWhileItIsAsked(t *testing.T) {
	for after, times := range map[time.Duration]int{storage.SilentTime / 2: 0, 5 * storage.SilentTime / 2: 2} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer near.Close()
			go func() {
				defer far.Close()
				request := make([]byte, 24)
				if _, err := io.ReadFull(far, request); err != nil {
					return
				}
				<-time.After(after)
				_, _ = far.Write([]byte{request[0], request[1], 0, 0, 0, 0, 0, 0})
			}()
			told := make(chan string, 9)
			e := storage.Retry(&asking{connection: connection{net: near, in: bufio.NewReader(near)}}, 1, time.Second, nil)
			ctx := storage.WithPatience(t.Context(), storage.Patience, func(pfn string, why error) {
				told <- storage.ServerOf(pfn) + ": " + why.Error()
			})
			if _, err := e.Stat(ctx, "root://se:1//file"); err != nil {
				t.Fatal(err)
			}
			if len(told) != times {
				t.Errorf("it answers after %v: told %d times", after, len(told))
			}
			for range len(told) {
				if text := <-told; text != "root://se:1: root://se:1 did not answer within 10s" {
					t.Error(text)
				}
			}
		})
	}
}

// A redirection leads to no server of this machine, also where there is a connection to
// that already, for a file that is here.
func TestKeptConnectionsAreNotForThoseWhoAreFar(t *testing.T) {
	address, _, _ := storagetest.XRootD(t)
	e := new(Element)
	t.Cleanup(e.Close)
	if _, err := e.Stat(t.Context(), fmt.Sprintf("root://%s//store/missing", address)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if c, _, err := e.protocol.take(t.Context(), address, true); !errors.Is(err, storage.ErrRedirect) {
		t.Error(c, err)
	}
	if _, kept, err := e.protocol.take(t.Context(), address, false); err != nil || !kept {
		t.Error("the connection was not kept for a file that is here:", err)
	}
}
