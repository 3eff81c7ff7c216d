package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"fairway/test/files"
)

const oneSite = "sites:\n  mine: # of the group\n    system: slurm\n# the end\n"

// odd is a file of sites that somebody has made in another way than most.
type odd struct {
	lay    func(path string) error
	list   string // what Load says; empty: it lists mine
	change string // what Add says; empty: it adds, and Remove restores the bytes
}

func writing(text string, mode os.FileMode) func(string) error {
	return func(path string) error {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
		return os.Chmod(path, mode)
	}
}

var odds = map[string]odd{
	"as most are":        {lay: writing(oneSite, 0o644)},
	"for its group":      {lay: writing(oneSite, 0o664)},
	"CRLF":               {lay: writing(strings.ReplaceAll(oneSite, "\n", "\r\n"), 0o644)},
	"a byte order mark":  {lay: writing(byteOrderMark+oneSite, 0o644)},
	"no line end at all": {lay: writing("sites:\n  mine: {system: slurm}", 0o644)},
	"a link": {lay: func(path string) error {
		target := filepath.Join(filepath.Dir(path), "elsewhere", "target.yaml")
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := writing(oneSite, 0o640)(target); err != nil {
			return err
		}
		return os.Symlink("elsewhere/target.yaml", path)
	}},
	"a link to nothing": {
		lay:  func(path string) error { return os.Symlink("nothing", path) },
		list: "is a link to nothing, which does not exist", change: "is a link to nothing, which does not exist",
	},
	"read-only":     {lay: writing(oneSite, 0o444), change: "is read-only: `chmod u+w` it"},
	"a folder":      {lay: func(path string) error { return os.Mkdir(path, 0o755) }, list: "is a folder", change: "is a folder"},
	"a pipe":        {lay: func(path string) error { return unix.Mkfifo(path, 0o644) }, list: "is no regular file", change: "is no regular file"},
	"empty":         {lay: writing("", 0o644), list: "the file is empty"},
	"a mark only":   {lay: writing(byteOrderMark, 0o644), list: "the file is empty"},
	"10 MB":         {lay: writing(oneSite+strings.Repeat("# x\n", 10<<18), 0o644), list: "has at most 1", change: "has at most 1"},
	"UTF-16":        {lay: writing("\xff\xfes\x00i\x00t\x00e\x00s\x00:\x00", 0o644), list: "is not in UTF-8", change: "is not in UTF-8"},
	"two documents": {lay: writing(oneSite+"---\n"+oneSite, 0o644), list: "s.yaml:5:1: a second YAML document", change: "a second YAML document"},
	"a site twice":  {lay: writing(oneSite+"  mine:\n    system: ssh\n", 0o644), list: `sites has "mine" twice`, change: `sites has "mine" twice`},
	"a key twice":   {lay: writing(oneSite+"    system: ssh\n", 0o644), list: `has "system" twice`, change: `has "system" twice`},
	"no YAML":       {lay: writing("sites:\n\t- x\n", 0o644), list: "this is no YAML", change: "this is no YAML"},
	"a flow":        {lay: writing("sites: {mine: {system: slurm}} # all\n", 0o644), change: "written in a form that only a person can change"},
	"indented by 4": {lay: writing("sites:\n    mine:\n        system: slurm\n", 0o644), change: "written in a form that only a person can change"},
}

// The file is a person's. Whatever it looks like, what cannot be changed without losing
// something is left alone and said, and the rest keeps bytes, mode, owner and links.
func TestOddFilesAreNeverLost(t *testing.T) {
	for name, o := range odds {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", filepath.Join(folder, "config"))
			path := filepath.Join(folder, FileName)
			if err := o.lay(path); err != nil {
				t.Fatal(err)
			}
			before := stateOf(path)
			sites, err := Load(folder)
			mustSay(t, "Load", err, strings.ReplaceAll(o.list, "s.yaml", path))
			if o.list == "" && (len(sites) != 1 || sites[0].Name != "mine") {
				t.Errorf("it lists %v", sites)
			}
			added, err := Add(path, "other", []Setting{{"system", []string{"slurm"}}})
			mustSay(t, "Add", err, o.change)
			if o.change == "" {
				if text, _ := os.ReadFile(path); strings.Contains(string(text), "\r\n") &&
					strings.Count(string(text), "\r\n") != strings.Count(string(text), "\n") {
					t.Errorf("some lines end in another way: %q", text)
				}
				if err := Remove(added); err != nil {
					t.Fatal(err)
				}
			}
			after := stateOf(path)
			if name == "empty" || name == "a mark only" || name == "no line end at all" {
				return // it has a line more now
			}
			if after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
		})
	}
}

func mustSay(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s says %v, want %q", what, err, want)
	}
}

// stateOf is all that a person may have set of a file.
func stateOf(path string) string {
	var st unix.Stat_t
	_ = unix.Stat(path, &st)
	link, _ := os.Readlink(path)
	text := ""
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		all, _ := os.ReadFile(path)
		text = fmt.Sprintf("%d %.200q", len(all), all)
	}
	return fmt.Sprintf("%o %d:%d %q %s", st.Mode, st.Uid, st.Gid, link, text)
}

// A file of another user is theirs: a rename would make it this user's. For root it keeps
// its owner.
func TestTheOwnerOfAFileStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes root to give files to another user")
	}
	path := filepath.Join(t.TempDir(), FileName)
	if err := writing(oneSite, 0o644)(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1, 2); err != nil {
		t.Fatal(err)
	}
	before := stateOf(path)
	added, err := Add(path, "other", []Setting{{"system", []string{"slurm"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(added); err != nil {
		t.Fatal(err)
	}
	if after := stateOf(path); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
}

// Two people, or two scripts, that describe sites at the same time both find theirs.
func TestSitesThatAreAddedAtTheSameTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			if _, err := Add(path, fmt.Sprintf("site%d", i), []Setting{{"system", []string{"slurm"}}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	data, err := readFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sites, err := Parse(path, data); err != nil || len(sites) != 16 {
		t.Errorf("%d sites, %v", len(sites), err)
	}
}

// Comments stand for something that only a person knows.
func TestRemoveKeepsCommentsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	text := "# head\nsites:\n  # before a\n  a: {system: slurm}\n  # before b\n  b:\n    system: slurm # of b\n    # " +
		"within b\n  # before c\n  c:\n    system: slurm\n# tail\n"
	if err := writing(text, 0o600)(path); err != nil {
		t.Fatal(err)
	}
	sites, err := Parse(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(sites[1]); err != nil {
		t.Fatal(err)
	}
	want := "# head\nsites:\n  # before a\n  a: {system: slurm}\n  # before b\n  # before c\n  c:\n    system: slurm\n# " +
		"tail\n"
	if got := files.Read(t, path); got != want {
		t.Errorf("got\n%s", got)
	}
}
