package web

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"fairway/internal/storage/storagetest"
)

var places atomic.Int64

func TestWebDAVConforms(t *testing.T) {
	address := storagetest.WebDAV(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: New(Credentials{}), Replaces: true, Escaped: true, PFN: fmt.Sprintf("dav://%s/%d", address, places.Add(1))}
	})
}

// XRootD 5.5.3 has ended in the middle of this test, now and then.
func TestXRootDOverHTTPConforms(t *testing.T) {
	if os.Getenv(storagetest.Required) == "" {
		t.Skip("the server of Debian 12 may end under it: make test-storage runs it")
	}
	_, address, _ := storagetest.XRootD(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: New(Credentials{}), NoTimes: true, Replaces: true, Escaped: true, PFN: fmt.Sprintf("http://%s/store/%d", address, places.Add(1))}
	})
}
