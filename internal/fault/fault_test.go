package fault

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var (
	testFirst  = New("fault.test.first")
	testSecond = New("fault.test.second")
)

func TestMain(m *testing.M) {
	if os.Getenv("FAULT_TEST_CHILD") != "" {
		for range 3 {
			if err := testFirst.Hit(); err != nil {
				println(err.Error())
				os.Exit(3)
			}
		}
		println("survived")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), append(environment, "FAULT_TEST_CHILD=1")...)
	return c
}

func TestUnarmedDoesNothing(t *testing.T) {
	if err := testFirst.Hit(); err != nil {
		t.Fatal(err)
	}
}

func TestNames(t *testing.T) {
	if got := Names(); !slices.Equal(got, []string{"fault.test.first", "fault.test.second"}) {
		t.Fatal(got)
	}
}

func TestTwoPointsOfOneName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	New("fault.test.first")
}

func TestErrorAtTheNthHit(t *testing.T) {
	disarm, err := Arm("fault.test.second:2:error")
	if err != nil {
		t.Fatal(err)
	}
	defer disarm()
	for i, want := range []bool{false, true, false} {
		if err := testSecond.Hit(); errors.Is(err, ErrInjected) != want {
			t.Fatalf("hit %d: %v", i+1, err)
		}
	}
}

func TestDisarm(t *testing.T) {
	disarm, err := Arm("fault.test.second:error")
	if err != nil {
		t.Fatal(err)
	}
	disarm()
	if err := testSecond.Hit(); err != nil {
		t.Fatal(err)
	}
}

func TestKill(t *testing.T) {
	err := child(t, "FAIRWAY_FAULT=fault.test.first:3").Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatal(err)
	}
}

func TestErrorFromEnvironment(t *testing.T) {
	out, err := child(t, "FAIRWAY_FAULT=fault.test.second,fault.test.first:error").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), "injected fault") {
		t.Fatal(err, string(out))
	}
}

func TestPause(t *testing.T) {
	c := child(t, "FAIRWAY_FAULT=fault.test.first:pause")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatal(err, status)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestOnceForAllProcesses(t *testing.T) {
	once := "FAIRWAY_FAULT_ONCE=" + filepath.Join(t.TempDir(), "once")
	if err := child(t, "FAIRWAY_FAULT=fault.test.first", once).Run(); err == nil {
		t.Fatal("the first process survived")
	}
	if err := child(t, "FAIRWAY_FAULT=fault.test.first", once).Run(); err != nil {
		t.Fatal("the second process died:", err)
	}
}

func TestMalformed(t *testing.T) {
	for _, spec := range []string{":1", "a:0", "a:b", "a:1:kill:2", "a,,b"} {
		if _, err := parse(spec); err == nil {
			t.Errorf("%q was accepted", spec)
		}
	}
	if _, err := Arm("no.such.point"); err == nil {
		t.Error("an unknown point was armed")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a.b:2:error,c:pause")
	f.Fuzz(func(t *testing.T, spec string) {
		armings, err := parse(spec)
		for i := range armings {
			if err == nil && (armings[i].name == "" || armings[i].nth < 1) {
				t.Fatalf("%q: %+v", spec, &armings[i])
			}
		}
	})
}
