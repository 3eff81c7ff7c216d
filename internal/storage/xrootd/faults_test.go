package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/storagetest"
)

func atOnce(context.Context, time.Duration) error { return nil }

// Whatever happens to connections, a file is right or not there.
func TestXRootDUnderFaults(t *testing.T) {
	defer func(before []string) { limits = before }(limits)
	limits = append(slices.Clip(limits), "XRD_STREAMERRORWINDOW=0", "XRD_CONNECTIONWINDOW=1", "XRD_REQUESTTIMEOUT=2", "XRD_STREAMTIMEOUT=2")
	address, _, store := storagetest.XRootD(t)
	proxy := storagetest.BeforeRoot(t, address)
	e := storage.Retry(Element{}, storage.DefaultTries, storage.DefaultBackoff, atOnce)
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
		"answers always cut": {fault: storagetest.RootFault{CutAnswers: 1 << 20}, times: -1, put: true},
		"requests cut":       {fault: storagetest.RootFault{CutRequests: 1 << 20}, times: 6, get: true, put: true},
		"bytes changed":      {fault: storagetest.RootFault{FlipAnswers: true}, times: -1, put: true},
		"no space":           {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootError(codeNoSpace, "no space") }), times: -1, forbidden: true},
		"refused":            {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootError(codeDenied, "token expired") }), times: -1, forbidden: true},
		"sent to the server": {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootRedirection(int32(number), host) }), times: -1, get: true, put: true},
		"sent to a file":     {fault: on(storagetest.RootOpen, func() (uint16, []byte, bool) { return storagetest.RootRedirection(-1, "file://localhost"+secretFile) }), times: -1, forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := fmt.Sprint(places.Add(1))
			if err := Element.Put(Element{}, t.Context(), local, fmt.Sprintf("root://%s//store/%s/there", address, folder)); err != nil {
				t.Fatal(err)
			}
			proxy.Do(one.times, one.fault)
			pfn := fmt.Sprintf("root://%s//store/%s/", proxy.Address, folder)
			got := filepath.Join(t.TempDir(), "got")
			_, err := e.Get(t.Context(), pfn+"there", got)
			text, missing := os.ReadFile(got)
			if err == nil && (string(text) != right || one.forbidden) || err != nil && (one.get || !errors.Is(missing, fs.ErrNotExist)) {
				t.Errorf("got %d bytes, %v", len(text), err)
			}
			proxy.Do(one.times, one.fault)
			err = e.Put(t.Context(), local, pfn+"new")
			text, missing = os.ReadFile(filepath.Join(store, folder, "new"))
			if err == nil && (string(text) != right || one.forbidden) || err != nil && (one.put || missing == nil && string(text) != right) {
				t.Errorf("put %d bytes, %v", len(text), err)
			}
		})
	}
	if text, err := os.ReadFile(secretFile); err != nil || string(text) != right {
		t.Errorf("a file of this machine was written to: %v", err)
	}
}
