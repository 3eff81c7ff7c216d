package dispatch

import (
	"testing"
	"unsafe"
)

// What there is a million of begins with a line of the processor's cache and
// fills whole ones.
func TestRowsFillLines(t *testing.T) {
	const line = 64
	for name, size := range map[string]uintptr{
		"job": unsafe.Sizeof(job{}), "file": unsafe.Sizeof(file{}), "request": unsafe.Sizeof(request{}),
	} {
		if size%line != 0 {
			t.Errorf("a %s takes %d bytes, which is no multiple of %d", name, size, line)
		}
	}
	if size := unsafe.Sizeof(job{}) + 4*unsafe.Sizeof(request{}) + unsafe.Sizeof(file{}); size > 768 {
		t.Errorf("a job with three inputs and an output takes %d bytes", size)
	}
}
