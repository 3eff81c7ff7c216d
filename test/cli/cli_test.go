// Package cli_test runs the program as a person does: each script of testdata
// is a sequence of commands with what they must print and end with, on real
// files, with real pilots.
package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"fairway/test/program"
)

var update = flag.Bool("update", false, "rewrite what the scripts expect")

var fairway string

func TestMain(m *testing.M) {
	testscript.Main(withProgram{m}, map[string]func(){
		"fairway": func() { panic("the program itself stands before it in PATH") },
	})
}

// withProgram runs tests that find fairway in PATH: as others have it, or with the race detector
// in `make soak`.
type withProgram struct{ *testing.M }

func (m withProgram) Run() int {
	folder, err := os.MkdirTemp("", "fairway-cli-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if os.Getenv("FAIRWAY_SOAK") != "" {
		fairway, err = program.BuildToFindRaces(folder)
	} else {
		fairway, err = program.Build(folder)
	}
	if err == nil {
		named := filepath.Join(folder, "bin", "fairway")
		err = errors.Join(os.Mkdir(filepath.Dir(named), 0o755), os.Rename(fairway, named),
			os.Setenv("PATH", filepath.Dir(named)+string(filepath.ListSeparator)+os.Getenv("PATH")),
			// Scripts mostly wait for processes.
			flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))))
		fairway = named
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.M.Run()
}

// patience is when a script that still waits for something is given up.
const patience = 5 * time.Minute

func TestScripts(t *testing.T) {
	// Under nohup SIGHUP is ignored, and programs that are started would inherit
	// that. What is caught here has its default there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                "testdata",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Condition:          condition,
		Deadline:           time.Now().Add(patience),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"web":   web,
			"mute":  mute,
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("LC_ALL", "C.UTF-8")
			return nil
		},
	})
}

// condition knows [lambda]: the programs and data of examples/lambda are there; and
// [root]: the tests may give files to other users; and [chattr]: they may make files
// immutable.
func condition(name string) (bool, error) {
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "chattr":
		return mayProtect(), nil
	}
	if name != "lambda" {
		return false, errors.New("unknown condition " + name)
	}
	for _, program := range []string{"bowtie2", "samtools", "bcftools"} {
		if _, err := exec.LookPath(program); err != nil {
			return false, nil
		}
	}
	_, err := os.Stat("/usr/share/doc/bowtie2/examples/reads/reads_1.fq.gz")
	return !errors.Is(err, fs.ErrNotExist), nil
}

func mayProtect() bool {
	file, err := os.CreateTemp("", "fairway-chattr-")
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_ = file.Close()
	return exec.Command("chattr", "+i", file.Name()).Run() == nil && exec.Command("chattr", "-i", file.Name()).Run() == nil
}

// web FOLDER starts a web server on loopback that has the files of a folder, until the script
// ends. $WEB is its URL.
func web(ts *testscript.TestScript, neg bool, arguments []string) {
	if neg || len(arguments) != 1 {
		ts.Fatalf("usage: web FOLDER")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(arguments[0]))))
	ts.Defer(server.Close)
	ts.Setenv("WEB", server.URL)
}

// mute starts a peer on loopback that takes connections and never says anything, until the
// script ends. $MUTE is its address.
func mute(ts *testscript.TestScript, neg bool, arguments []string) {
	if neg || len(arguments) != 0 {
		ts.Fatalf("usage: mute")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	var taken []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			taken = append(taken, peer)
		}
	}()
	ts.Defer(func() {
		_ = listener.Close()
		<-ended
		for _, peer := range taken {
			_ = peer.Close()
		}
	})
	ts.Setenv("MUTE", listener.Addr().String())
}

// exits CODE COMMAND... runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, arguments []string) {
	if neg || len(arguments) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	code := 0
	if err := ts.Exec(arguments[1], arguments[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("exits: %v", err)
		}
		code = ended.ExitCode()
	}
	if strconv.Itoa(code) != arguments[0] {
		ts.Fatalf("exit code %d, want %s", code, arguments[0])
	}
}
