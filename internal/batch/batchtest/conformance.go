package batchtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/lib/sched"
)

// Opened is a batch system of which a test may use two slots.
type Opened struct {
	System batch.System
	// Other is the same batch system for another state.
	Other batch.System
	// Folder is where a launch that runs makes the file LAUNCH.began, and LAUNCH.ended
	// when it was ended in order.
	Folder string
}

// Script is what a launch of a test does: it tells that it runs, and ends when it is
// told to.
func Script(folder, launch string) string {
	return fmt.Sprintf(`file='%s'
trap 'echo over > "$file.ended"; exit 0' TERM USR2
trap '' USR1
echo $$ > "$file.began"
while :; do sleep 0.1; done
`, strings.ReplaceAll(filepath.Join(folder, launch), "'", `'\''`))
}

// OddFolder is a folder whose name means something to shells, job descriptions and
// patterns of batch systems. Jobs may use it as another user.
func OddFolder(t *testing.T) string {
	t.Helper()
	outer := t.TempDir()
	folder := filepath.Join(outer, "a \"b\" 'c' $JOB_ID $(id) %j %% {name} (d);&|<>*?[e]~#!=,:@\\n\nné")
	for _, dir := range []string{filepath.Dir(outer), outer, folder} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Run checks what package batch says of a System.
func Run(t *testing.T, open func(t *testing.T) Opened) {
	o := open(t)
	t.Cleanup(func() { _ = o.System.Withdraw(context.Background(), "l-1", "l-2") })
	before, err := o.System.Status(t.Context())
	if err != nil || len(before) != 0 {
		t.Fatal("a batch system without launches says", before, err)
	}
	for _, launch := range []string{"l-1", "l-2"} {
		if err := o.System.Submit(t.Context(), launch); err != nil {
			t.Fatal(err)
		}
	}
	// Every launch is in the answer from its submission on.
	found := status(t, o.System)
	if len(found) != 2 || found["l-1"].Jobs != 1 || found["l-1"].State > batch.Running {
		t.Fatalf("after two submissions: %v", found)
	}
	if others := status(t, o.Other); len(others) != 0 {
		t.Errorf("another state has %v", others)
	}
	o.Await(t, "l-1.began")
	o.Await(t, "l-2.began")
	if found := o.reach(t, "l-1", batch.Running); found["l-2"].State > batch.Running {
		t.Errorf("while both run: %v", found)
	}
	if err := o.Other.Withdraw(t.Context(), "l-1", "l-2"); err != nil {
		t.Error(err)
	}
	if err := o.System.Withdraw(t.Context(), "l-1", "unknown"); err != nil {
		t.Fatal(err)
	}
	o.Await(t, "l-1.ended")
	o.Gone(t, "l-1")
	if found := status(t, o.System); found["l-2"].State != batch.Running {
		t.Errorf("the other one was ended too: %v", found)
	}
	if err := o.System.Withdraw(t.Context(), "l-1"); err != nil {
		t.Error("withdrawn twice:", err)
	}
	o.stop(t, "l-2") // one that stands still is ended too
	if err := o.System.Withdraw(t.Context(), "l-2"); err != nil {
		t.Fatal(err)
	}
	o.Gone(t, "l-2")
}

func status(t *testing.T, s batch.System) map[string]batch.Status {
	t.Helper()
	found, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Await waits for a file of a launch in Folder, whole lines, and returns its path.
func (o *Opened) Await(t *testing.T, name string) (path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	path = filepath.Join(o.Folder, name)
	_, err := sched.Default().WaitFile(ctx, sched.FileQuery{Path: path, Until: func(sched.FileState) bool {
		text, err := os.ReadFile(path)
		return err == nil && strings.HasSuffix(string(text), "\n")
	}})
	if err != nil {
		t.Fatalf("%s did not come: %v; the batch system says %v", name, err, status(t, o.System))
	}
	return path
}

// stop has a launch stand still, whose processes are on this machine.
func (o *Opened) stop(t *testing.T, launch string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(o.Folder, launch+".began"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reach waits until a launch has a state.
func (o *Opened) reach(t *testing.T, launch string, wanted batch.State) map[string]batch.Status {
	return o.Until(t, fmt.Sprintf("%s is %v", launch, wanted), func(found map[string]batch.Status) bool {
		is, ok := found[launch]
		return ok && is.State == wanted
	})
}

// Gone waits until a launch is gone, or is not known any more.
func (o *Opened) Gone(t *testing.T, launch string) {
	o.Until(t, launch+" is gone", func(found map[string]batch.Status) bool {
		is, ok := found[launch]
		return !ok || is.State == batch.Gone
	})
}

// Until waits until what the batch system says of all launches is what is wanted.
func (o *Opened) Until(t *testing.T, what string, reached func(map[string]batch.Status) bool) map[string]batch.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTime)
	defer cancel()
	asked := sched.NewStatus(sched.Default(), sched.StatusConfig[string, map[string]batch.Status]{
		Name: t.Name(), Every: 50 * time.Millisecond,
		Query: func(ctx context.Context, keys []string) (map[string]map[string]batch.Status, error) {
			found, err := o.System.Status(ctx)
			return map[string]map[string]batch.Status{keys[0]: found}, err
		},
	})
	answer, err := asked.Wait(ctx, what, func(a sched.Answer[map[string]batch.Status]) bool { return reached(a.Value) })
	if err != nil {
		t.Fatalf("%s never came: %v; at last %v", what, err, status(t, o.System))
	}
	return answer.Value
}
