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
	storagetest.Run(t, func(t *testing.T) storagetest.Place {
		return storagetest.Place{Element: Element{}, Replaces: true, PFN: fmt.Sprintf("root://%s//store/%d", address, places.Add(1))}
	})
}

func TestFullXRootD(t *testing.T) {
	address, _, _ := storagetest.FullXRootD(t)
	storagetest.Full(t, storagetest.Place{Element: Element{}, PFN: "root://" + address + "//store/x"})
}
