package xrootd

import (
	"fmt"
	"sync/atomic"
	"testing"

	"fairway/internal/storage/storagetest"
)

var places atomic.Int64

func TestXRootDConforms(t *testing.T) {
	address, _, _ := storagetest.XRootD(t)
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		return storagetest.Folder{
			Element: new(Element), Replaces: true, PFN: fmt.Sprintf("root://%s//store/%d", address, places.Add(1)),
		}
	})
}

// A server that asks who one is has the programs do everything.
func TestClosedXRootDConforms(t *testing.T) {
	address := storagetest.ClosedXRootD(t)
	e := new(Element)
	storagetest.Run(t, func(t *testing.T) storagetest.Folder {
		return storagetest.Folder{Element: e, Replaces: true, PFN: fmt.Sprintf("root://%s//store/%d", address, places.Add(1))}
	})
	if e.protocol.open[address] {
		t.Error("the server was taken for one that is open to anybody")
	}
}

func TestFullXRootD(t *testing.T) {
	address, _, _ := storagetest.FullXRootD(t)
	storagetest.Full(t, storagetest.Folder{Element: new(Element), PFN: "root://" + address + "//store/x"})
}
