package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// clockVariable is the environment variable by which a process of the turnable fairway
// finds its clock: a file of one number, the seconds that it is ahead.
const clockVariable = "FAIRWAY_TEST_CLOCK"

// untouched is in time.Now, and turnedNow is what stands there in the turnable fairway.
const (
	untouched = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n"
	turnedNow = "\tsec, nsec, mono := runtimeNow()\n\tsec += turned()\n\tif mono == 0 {\n"
)

// clockSource is the file that the turnable fairway has besides in package time.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

func turned() int64 { return atomic.LoadInt64(ahead) }

// ahead is how many seconds the wall clock is ahead of that of the machine.
var ahead = func() *int64 {
	path, told := syscall.Getenv("` + clockVariable + `")
	if !told {
		return new(int64)
	}
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("the clock " + path + " cannot be opened: " + err.Error())
	}
	page, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("the clock " + path + " cannot be mapped: " + err.Error())
	}
	_ = syscall.Close(file)
	return (*int64)(unsafe.Pointer(&page[0]))
}()
`

// BuildTurnable puts a fairway into a folder whose wall clock a test can turn, and returns its
// path. It is the product but for time.Now: the monotonic clock, and the times that the kernel
// gives to files, stay. All of the standard library is compiled for it. It fails with an
// installation of Go whose time.Now is not the one that it knows.
func BuildTurnable(folder string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	overlay := ""
	if err == nil {
		overlay, err = turnable(filepath.Join(strings.TrimSpace(string(root)), "src/time"), folder)
	}
	if err != nil {
		return "", fmt.Errorf("building a fairway with a clock that can be turned: %w", err)
	}
	return build(folder, "fairway-turnable", "-overlay", overlay)
}

// turnable writes the sources that replace those of package time, and what go build has to
// know of them.
func turnable(source, folder string) (overlay string, err error) {
	original := filepath.Join(source, "time.go")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if strings.Count(string(text), untouched) != 1 {
		return "", fmt.Errorf("time.Now in %s is not the one that can be turned (Go 1.26): change package program of the "+
			"tests", original)
	}
	changed := strings.Replace(string(text), untouched, turnedNow, 1)
	replaced := map[string]string{}
	for name, text := range map[string]string{"time.go": changed, "ahead.go": clockSource} {
		replaced[filepath.Join(source, name)] = filepath.Join(folder, name)
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	all, bad := json.Marshal(map[string]any{"Replace": replaced})
	overlay = filepath.Join(folder, "overlay.json")
	return overlay, errors.Join(err, bad, os.WriteFile(overlay, all, 0o644))
}

// Clock is the wall clock of processes of the turnable fairway. Any goroutine may call its
// methods.
type Clock struct {
	path  string
	ahead *int64 // seconds, in a page of the file
}

// NewClock makes a clock that shows the time of this machine, in a file that must not be there
// yet. It goes with the test.
func NewClock(t testing.TB, path string) *Clock {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		err = file.Truncate(8)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	page, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	return &Clock{path, (*int64)(unsafe.Pointer(&page[0]))}
}

// Turn has the clock be ahead of that of this machine, or behind it.
func (c *Clock) Turn(ahead time.Duration) { atomic.StoreInt64(c.ahead, int64(ahead/time.Second)) }

// Variable is what a process gets in its environment to go by the clock.
func (c *Clock) Variable() string { return clockVariable + "=" + c.path }
