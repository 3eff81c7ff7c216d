package batch

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// What a test starts as a pilot is this program: it does what the variable
// says.
func TestMain(m *testing.M) {
	switch os.Getenv("BATCH_TEST") {
	case "":
		os.Exit(m.Run())
	case "fail":
		fmt.Println("one line")
		fmt.Fprintln(os.Stderr, "no tools here")
		os.Exit(1)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready", os.Getpid())
		for { // Go ends a program all of whose goroutines wait for each other
			_, _ = unix.Poll(nil, -1)
		}
	case "wait":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		fmt.Println("ready", os.Getpid())
		<-ctx.Done()
		os.Exit(0)
	}
}

func local(t *testing.T, what string) *Local {
	t.Helper()
	l, err := NewLocal(LocalConfig{
		Command: []string{os.Args[0]}, LogDir: t.TempDir(),
		Environment: func(launch string) ([]string, error) {
			return []string{"BATCH_TEST=" + what, "LAUNCH=" + launch}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func submit(t *testing.T, l *Local, n int) []string {
	t.Helper()
	var launches []string
	for i := range n {
		launches = append(launches, fmt.Sprintf("local-%d", i))
		if err := l.Submit(t.Context(), launches[i]); err != nil {
			t.Fatal(err)
		}
	}
	return launches
}

// ready waits until a pilot has started and returns its process.
func ready(t *testing.T, l *Local, launch string) (pid int) {
	t.Helper()
	path := filepath.Join(l.cfg.LogDir, launch+".log")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := sched.Default().WaitFile(ctx, sched.FileQuery{Path: path, Until: func(sched.FileState) bool {
		text, _ := os.ReadFile(path)
		_, err := fmt.Sscanf(string(text), "ready %d\n", &pid)
		return err == nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestEndings(t *testing.T) {
	l := local(t, "fail")
	launches := submit(t, l, 3)
	var ended []string
	for range launches {
		e := <-l.Ended()
		if !strings.Contains(e.Reason, "exit status 1: no tools here") {
			t.Error(e.Reason)
		}
		ended = append(ended, e.Launch)
	}
	slices.Sort(ended)
	slices.Sort(launches)
	if !slices.Equal(launches, ended) {
		t.Error(launches, ended)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, ok := <-l.Ended(); ok {
		t.Error("an ending after Close")
	}
}

func TestWithdraw(t *testing.T) {
	l := local(t, "wait")
	launches := submit(t, l, 2)
	pid := ready(t, l, launches[0])
	if own, err := syscall.Getpgid(pid); err != nil || own != pid {
		t.Error("it has no session of its own:", own, err)
	}
	if err := l.Withdraw(t.Context(), launches[0]); err != nil {
		t.Fatal(err)
	}
	if e := <-l.Ended(); e.Launch != launches[0] || e.Reason != "ended" {
		t.Error(e)
	}
	if err := l.Withdraw(t.Context(), launches[0]); err != nil {
		t.Error("withdrawn twice:", err)
	}
	ready(t, l, launches[1])
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Submit(t.Context(), "late"); err == nil {
		t.Error("submitted after Close")
	}
}

// One that was stopped goes on, and heeds the signal; one that heeds none is killed.
func TestWithdrawnPilotThatStandsStill(t *testing.T) {
	for what, reason := range map[string]string{"wait": "ended", "deaf": "killed"} {
		l := local(t, what)
		if what == "deaf" {
			l.grace = time.Millisecond
		}
		launch := submit(t, l, 1)[0]
		if err := syscall.Kill(ready(t, l, launch), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if err := l.Withdraw(t.Context(), launch); err != nil {
			t.Fatal(err)
		}
		if e := <-l.Ended(); e.Launch != launch || !strings.Contains(e.Reason, reason) {
			t.Error(what, e)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A submission that is repeated, since nobody knows whether it was taken, must not
// start a second pilot of that name.
func TestSubmittedTwice(t *testing.T) {
	l := local(t, "wait")
	launch := submit(t, l, 1)[0]
	if err := l.Submit(t.Context(), launch); err != nil {
		t.Fatal(err)
	}
	ready(t, l, launch)
	if err := l.Withdraw(t.Context(), launch); err != nil {
		t.Fatal(err)
	}
	<-l.Ended()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if end, ok := <-l.Ended(); ok {
		t.Error("it ended twice:", end)
	}
}

func TestNotStarted(t *testing.T) {
	l := local(t, "wait")
	defer l.Close()
	l.cfg.Command = []string{"/no/such/program"}
	if err := l.Submit(t.Context(), "local-1"); err == nil {
		t.Error("a program that is not there was started")
	}
}
