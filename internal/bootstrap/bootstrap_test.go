package bootstrap

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/internal/access"
)

// said is what the program of these tests says of how it was started.
const theProgram = `#!/bin/sh
[ "$1" = --version ] && exit
echo "mask $(umask)"
for word; do echo "argument $word"; done
cat
`

// server gives out a program, as that of a state does.
type server struct {
	folder    string
	authority *access.Authority
	tokens    *access.Tokens
	load      Load
	calls     atomic.Int32 // that came through TLS
	wrong     []string
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{folder: t.TempDir(), tokens: access.NewTokens()}
	var err error
	if s.authority, err = access.OpenAuthority(filepath.Join(t.TempDir(), "authority"), "id"); err != nil {
		t.Fatal(err)
	}
	listener, addresses, err := access.Listen("127.0.0.1:0", 0, s.authority)
	if err != nil {
		t.Fatal(err)
	}
	handler := access.Handler(s.tokens, map[string]http.Handler{
		Prefix: Handler(s.folder, func(text string) { s.wrong = append(s.wrong, text) }),
	})
	web := access.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.calls.Add(1)
		handler.ServeHTTP(w, r)
	}), slog.New(slog.DiscardHandler))
	go web.Serve(listener)
	t.Cleanup(func() { web.Close() })
	sum := sha256.Sum256([]byte(theProgram))
	program := Program{Hash: hex.EncodeToString(sum[:]), Size: int64(len(theProgram))}
	if err := copyTo(Path(s.folder, program.Hash), strings.NewReader(theProgram)); err != nil {
		t.Fatal(err)
	}
	s.load = Load{
		Connection: access.Connection{Addresses: addresses, Pin: s.authority.Pin(), Launch: "site-1", Token: access.NewToken(), Site: "site"},
		Authority:  s.authority.Certificate(), Program: program, Scratch: "$SCRATCH/a b's",
		Arguments: []string{"--flag", "it's"},
	}
	s.tokens.Allow(s.load.Connection.Grant())
	return s
}

// node is a machine with few programs, each of which writes down its arguments.
type node struct {
	t      *testing.T
	folder string
}

func newNode(t *testing.T, tools ...string) *node {
	t.Helper()
	n := &node{t, t.TempDir()}
	for _, name := range append(tools, "sed", "cat", "rm", "mkdir", "uname", "head", "tail", "tr", "cut", "chmod",
		"sha256sum") {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		if name == "python3" {
			out, err := exec.Command(path, "-c", "import sys; print(sys.executable)").Output()
			if err != nil {
				t.Fatal(err)
			}
			path = strings.TrimSpace(string(out))
		}
		n.program(name, fmt.Sprintf("exec %s \"$@\"", path))
	}
	n.program("sleep", "exit 0")
	return n
}

// program has a shell text be a program of the node.
func (n *node) program(name, text string) {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Join(n.folder, "bin"), 0o755); err != nil {
		n.t.Fatal(err)
	}
	text = fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"%s $*\" >>%s/arguments\n%s\n", name, n.folder, text)
	if err := os.WriteFile(filepath.Join(n.folder, "bin", name), []byte(text), 0o755); err != nil {
		n.t.Fatal(err)
	}
}

// start runs what a launch carries, and returns what the pilot said. Where none was
// started, that is what stands in the log.
func (n *node) start(load Load) (said string, err error) {
	n.t.Helper()
	start, err := Carried(load)
	if err != nil {
		n.t.Fatal(err)
	}
	cmd := exec.CommandContext(n.t.Context(), "/bin/sh")
	cmd.Stdin = strings.NewReader(start.Before + "umask 027\n" + start.After)
	cmd.Env = []string{"PATH=" + filepath.Join(n.folder, "bin"), "SCRATCH=" + n.folder}
	out, err := cmd.CombinedOutput()
	logs, _ := filepath.Glob(filepath.Join(n.folder, "*/fairway.*/log"))
	for _, log := range logs {
		text, _ := os.ReadFile(log)
		out = append(out, text...)
	}
	return string(out), err
}

func (n *node) arguments() string {
	text, _ := os.ReadFile(filepath.Join(n.folder, "arguments"))
	return string(text)
}

// left are the files that a launch has left, but its log.
func (n *node) left() (names []string) {
	all, _ := filepath.Glob(filepath.Join(n.folder, "*/fairway.*/*"))
	for _, path := range all {
		names = append(names, filepath.Base(path))
	}
	return names
}

var tools = []string{"curl", "wget", "python3", "openssl"}

// Whatever one program a node has, the pilot starts, and the token is in no list of
// processes.
func TestEachToolBringsTheProgram(t *testing.T) {
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			s, n := serve(t), newNode(t, tool)
			said, err := n.start(s.load)
			if err != nil {
				t.Fatal(err, said)
			}
			connection, _ := s.load.Connection.Encode()
			for _, want := range []string{
				"mask 0027\nargument pilot\nargument --connect\nargument -\nargument --flag\nargument it's\nargument --brought\n",
				"\n" + string(connection),
			} {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			if text := n.arguments(); !strings.Contains(text, "\n"+tool+" ") ||
				strings.Contains(text, string(s.load.Connection.Token)) {
				t.Errorf("arguments:\n%s", text)
			}
			if left := n.left(); slices.Contains(left, "headers") || slices.Contains(left, tool) {
				t.Error("left:", left)
			}
		})
	}
}

// Whoever listens at the server's address without its key learns nothing.
func TestNothingIsSaidToAnotherServer(t *testing.T) {
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			s, other, n := serve(t), serve(t), newNode(t, tool)
			load := s.load
			load.Connection.Addresses = other.load.Connection.Addresses
			said, err := n.start(load)
			if err == nil || other.calls.Load() != 0 || !strings.Contains(said,
				"the server was not reached at any of 127.0.0.1:") {
				t.Errorf("%d calls, %v, %s", other.calls.Load(), err, said)
			}
			n.mustBeBare()
			if got := strings.Count(n.arguments(), "\nsleep "); got != 6 {
				t.Errorf("%d pauses:\n%s", got, n.arguments())
			}
		})
	}
}

// mustBeBare makes sure that neither program nor secret is left.
func (n *node) mustBeBare() {
	n.t.Helper()
	for _, name := range n.left() {
		if slices.Contains([]string{"fairway", "headers", "connection", "curl", "wget"}, name) {
			n.t.Error("left:", n.left())
		}
	}
}

func TestAProgramWithAnotherHashIsNotRun(t *testing.T) {
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			s, n := serve(t), newNode(t, tool)
			other := strings.Replace(theProgram, "cat", "dog", 1)
			if err := os.WriteFile(Path(s.folder, s.load.Program.Hash), []byte(other), 0o700); err != nil {
				t.Fatal(err)
			}
			said, err := n.start(s.load)
			if err == nil || !strings.Contains(said, "is not the program: its hash is another") ||
				strings.Contains(said, "argument") {
				t.Error(err, said)
			}
			n.mustBeBare()
		})
	}
}

// A launch that is not wanted ends at once, and says why.
func TestALaunchThatIsNotWantedEnds(t *testing.T) {
	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			s, n := serve(t), newNode(t, tool)
			s.tokens.Revoke("site-1")
			said, err := n.start(s.load)
			if err == nil || !strings.Contains(said, "the server refuses") || s.calls.Load() != 1 {
				t.Error(s.calls.Load(), err, said)
			}
			n.mustBeBare()
		})
	}
}

// An address that leads nowhere does not keep a node from the next one, nor does a tool
// that is too old.
func TestOtherAddressesAndToolsAreTried(t *testing.T) {
	s, n := serve(t), newNode(t, "openssl")
	n.program("curl", "echo curl: unknown option >&2; exit 2")
	s.load.Connection.Addresses = append([]string{"127.0.0.1:1"}, s.load.Connection.Addresses...)
	if said, err := n.start(s.load); err != nil || !strings.Contains(said, "argument pilot") {
		t.Error(err, said)
	}
}

func TestANodeOfAnotherKindIsRefused(t *testing.T) {
	s, n := serve(t), newNode(t, "curl")
	n.program("uname", "echo riscv64")
	said, err := n.start(s.load)
	if err == nil || !strings.Contains(said, "the server refuses") {
		t.Error(err, said)
	}
	if len(s.wrong) != 1 || !strings.Contains(s.wrong[0], `a node is of the kind "riscv64", and this program is for `+machine()) {
		t.Error(s.wrong)
	}
}

func TestANodeWithoutAnyTool(t *testing.T) {
	s, n := serve(t), newNode(t)
	said, err := n.start(s.load)
	if err == nil || !strings.Contains(said, "none of curl, wget, python3 and openssl") {
		t.Error(err, said)
	}
	n.mustBeBare()
}

// Somebody else may have put a link, or a folder, where the script would put secrets.
func TestAFolderThatIsThereIsNotUsed(t *testing.T) {
	s, n := serve(t), newNode(t, "curl")
	start, err := Carried(s.load)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	script := filepath.Join(n.folder, "script")
	if err := os.WriteFile(script, []byte(start.Before+start.After), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", `mkdir "$SCRATCH/a b's"; ln -s "$0" "$SCRATCH/a b's/fairway.site-1.$$"; exec /bin/sh `+script, elsewhere)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SCRATCH=" + n.folder}
	out, err := cmd.CombinedOutput()
	if there, _ := os.ReadDir(elsewhere); err == nil || len(there) > 0 || s.calls.Load() > 0 {
		t.Errorf("%v %s: %v", err, out, there)
	}
}

func TestScratchFolders(t *testing.T) {
	for scratch, want := range map[string]string{
		"$TMPDIR": `"${TMPDIR:-/tmp}"`, "${TMPDIR}/a b": `"${TMPDIR:-/tmp}"'/a b'`, "/local/$x": `'/local/$x'`,
		"$SCRATCH/it's": `"${SCRATCH:?is not set on this node: change scratch of the site}"'/it'\''s'`,
	} {
		if got, err := onNode(scratch); err != nil || got != want {
			t.Errorf("%s: %s, %v", scratch, got, err)
		}
	}
	if _, err := onNode("tmp"); err == nil {
		t.Error("a folder that depends on where the script begins")
	}
}

// A copy is what a pilot runs as this user: one that is damaged, or that somebody else
// could have put there or changed, is replaced.
func TestACopyThatIsWrongIsReplaced(t *testing.T) {
	folder := filepath.Join(t.TempDir(), Folder)
	p, err := Keep(folder)
	if err != nil {
		t.Fatal(err)
	}
	path := Path(folder, p.Hash)
	right := func(what string) {
		t.Helper()
		again, err := Keep(folder)
		if err != nil || again != p {
			t.Fatal(what, err)
		}
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != 0o500 || info.Size() != p.Size {
			t.Fatalf("%s: %v, %v", what, info.Mode(), err)
		}
		if there, err := Find(folder, p.Hash); err != nil || there != p {
			t.Fatal(what, err)
		}
	}
	right("as it is")
	before, _ := os.Lstat(path)
	right("once more")
	if now, _ := os.Lstat(path); !os.SameFile(before, now) {
		t.Error("a copy that is right was replaced")
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for what, spoil := range map[string]func() error{
		"truncated":          func() error { return os.Truncate(path, p.Size/2) },
		"empty":              func() error { return os.Truncate(path, 0) },
		"writable by others": func() error { return os.Chmod(path, 0o722) },
		"not executable":     func() error { return os.Chmod(path, 0o400) },
		"a link":             func() error { return renameAndLink(path, elsewhere) },
		"another's":          func() error { return os.Chown(path, 1, 1) },
	} {
		if what == "another's" && os.Geteuid() != 0 {
			continue
		}
		if err := spoil(); err != nil {
			t.Fatal(what, err)
		}
		if _, err := Find(folder, p.Hash); err == nil {
			t.Error(what, "is found good")
		}
		right(what)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || int64(len(text)) != p.Size {
		t.Error("what the link led to was touched:", err)
	}
}

func renameAndLink(path, elsewhere string) error {
	if err := os.Rename(path, elsewhere); err != nil {
		return err
	}
	return os.Symlink(elsewhere, path)
}

func TestSweepLeavesWhatIsUsedAndWhatIsNotOurs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), Folder)
	if err := Sweep(folder); err != nil {
		t.Error("a folder that is not there:", err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	hash := func(digit string) string { return strings.Repeat(digit, 64) }
	for _, name := range []string{
		copyPrefix + hash("a"), copyPrefix + hash("b"), copyPrefix + "1234.new", "mine", copyPrefix + "notes",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(folder, hash("a")); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(folder)
	var names bytes.Buffer
	for _, e := range entries {
		fmt.Fprintln(&names, e.Name())
	}
	if want := fmt.Sprintf("%s%s\n%snotes\nmine\n", copyPrefix, hash("a"), copyPrefix); names.String() != want {
		t.Errorf("left:\n%s", &names)
	}
	for _, name := range []string{"mine", copyPrefix + "notes"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(folder); err == nil {
		t.Error("an empty folder is left")
	}
}
