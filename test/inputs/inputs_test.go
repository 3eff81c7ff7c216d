package inputs

import (
	"bufio"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/test/files"
	"fairway/test/program"
)

// fairway is the path of the binary under test.
var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// opens counts how often files and folders are opened, by their names in a folder.
type opens struct {
	t       *testing.T
	fd      int
	watched map[int32]string
	count   map[string]int
}

// watchOpens watches names in a folder from now on.
func watchOpens(t *testing.T, folder string, names ...string) *opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	o := &opens{t: t, fd: fd, watched: map[int32]string{}, count: map[string]int{}}
	for _, name := range names {
		wd, err := unix.InotifyAddWatch(fd, filepath.Join(folder, name), unix.IN_OPEN|unix.IN_CLOSE)
		if err != nil {
			t.Fatal(err)
		}
		o.watched[int32(wd)] = name
	}
	return o
}

// counted tells how often each was opened since the last call. What was opened in a folder does not
// count for the folder.
func (o *opens) counted() string {
	o.t.Helper()
	buffer := make([]byte, 1<<20)
	for {
		n, err := unix.Read(o.fd, buffer)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			o.t.Fatal(err)
		}
		for at := 0; at < n; {
			event := (*unix.InotifyEvent)(unsafe.Pointer(&buffer[at]))
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				o.t.Fatal("too many events to count")
			}
			if event.Len == 0 && event.Mask&unix.IN_OPEN != 0 {
				o.count[o.watched[event.Wd]]++
			}
			at += unix.SizeofInotifyEvent + int(event.Len)
		}
	}
	text := ""
	for _, name := range slices.Sorted(maps.Values(o.watched)) {
		text += fmt.Sprintf("%s %d; ", name, o.count[name])
	}
	clear(o.count)
	return text
}

const workflow = `workflow: once
parameters: {greeting: hello}
inputs:
  texts: {files: 'in/{t}.txt', as: '{t}.txt'}
  listed: {url_list: list.txt, as: 'listed/{l}.txt', match: '{l}.txt', close: file done}
steps:
  a: {each: '{t}.txt', writes: 'a/{t}', command: 'echo ${greeting} >$out'}
  b: {each: 'listed/{l}.txt', writes: 'b/{l}', command: 'cp $in $out'}
  c: {merge: ['a/{t}', 'b/{l}'], writes: c, command: 'cat $in >$out'}
`

// A run reads its workflow file once, lists the folder of an input once and reads a list once,
// whether it is new, begins again or has nothing to do.
func TestWhatPeopleWroteIsReadOnce(t *testing.T) {
	folder := files.Folder(t, map[string]string{
		"workflow.yaml": workflow, "in/x.txt": "x", "in/y.txt": "y", "other/z.txt": "z",
		"list.txt": "other/z.txt\n", "done": "",
	})
	o := watchOpens(t, folder, "workflow.yaml", "in", "list.txt")
	const once = "in 1; list.txt 1; workflow.yaml 1; "
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"run"}, once},
		{[]string{"run"}, once},
		{[]string{"run", "--set", "greeting=bye"}, once},
		{[]string{"run", "--dry-run"}, once},
		{[]string{"run", "--until", "a"}, "in 1; list.txt 0; workflow.yaml 1; "}, // which needs no list
		{[]string{"check"}, once},
	} {
		execute(t, append(c.arguments, "-C", folder)...)
		if got := o.counted(); got != c.want {
			t.Errorf("%v opens: %s", c.arguments, got)
		}
	}
}

// A workflow that is submitted is read once by who submits it, and its inputs once by the server.
func TestWhatIsSubmittedIsReadOnce(t *testing.T) {
	folder := files.Folder(t, map[string]string{
		"workflow.yaml": workflow, "in/x.txt": "x", "other/z.txt": "z", "list.txt": "other/z.txt\n", "done": "",
	})
	state := t.TempDir()
	o := watchOpens(t, folder, "workflow.yaml", "in", "list.txt")
	server := exec.Command(fairway, "serve", "--state", state, "--pilots", "1")
	said, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "serving") {
	}
	execute(t, "submit", "--watch", "--server", state, "-C", folder)
	if got := o.counted(); got != "in 1; list.txt 1; workflow.yaml 1; " {
		t.Errorf("a submission opens: %s", got)
	}
	execute(t, "stop", "--server", state)
	for lines.Scan() {
	}
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
}

func execute(t *testing.T, arguments ...string) {
	t.Helper()
	if out, err := exec.Command(fairway, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", arguments, err, out)
	}
}
