package launch

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/internal/access"
	"fairway/internal/bootstrap"
)

func open(t *testing.T, folder string) *Connections {
	t.Helper()
	authority, err := access.OpenAuthority(filepath.Join(folder, "..", "authority"), "id")
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenConnections(folder, authority, []string{"host:1"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Connections) must(t *testing.T, launch string) Way {
	t.Helper()
	way, err := c.To(launch, "site", struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// copies are the programs in a folder, by hash.
func (c *Connections) copies() (hashes []string) {
	entries, _ := os.ReadDir(c.Programs())
	for _, e := range entries {
		hashes = append(hashes, strings.TrimPrefix(e.Name(), "fairway-"))
	}
	return hashes
}

// A launch that waits starts the program that it was submitted with, also when the server
// is of a later version by now. The copy goes when no launch uses it.
func TestAnUpgradeDoesNotDisturbLaunchesThatWait(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pilots[1]")
	c := open(t, folder)
	now := c.program.Hash
	old := writeProgram(t, c, "an earlier version")
	for _, launch := range []string{"site.1", "site.2"} {
		way := c.must(t, launch)
		way.Connection.Program = old
		if err := way.Connection.Write(way.File); err != nil {
			t.Fatal(err)
		}
	}
	writeProgram(t, c, "a version that nobody uses")

	c = open(t, folder)
	c.Keep([]string{"site.1", "site.2"})
	if got, want := c.copies(), sorted(now, old); !slices.Equal(got, want) {
		t.Errorf("copies %v, want %v", got, want)
	}
	if way := c.must(t, "site.1"); way.Program.Hash != old || way.Path != bootstrap.Path(c.Programs(), old) {
		t.Error("a launch that is submitted again:", way.Program)
	}
	if way := c.must(t, "site.3"); way.Program.Hash != now {
		t.Error("a new launch:", way.Program)
	}
	c.Forget("site.3")
	c.Forget("site.1")
	c.Close()
	if got := c.copies(); !slices.Equal(got, []string{old}) {
		t.Errorf("copies %v, and %s is used", got, old)
	}
	c = open(t, folder)
	c.Keep(nil)
	c.Close()
	if _, err := os.Lstat(c.Programs()); err == nil {
		t.Error("copies are left that nobody uses:", c.copies())
	}
}

func sorted(hashes ...string) []string {
	slices.Sort(hashes)
	return hashes
}

// writeProgram puts a copy beside that of this process.
func writeProgram(t *testing.T, c *Connections, text string) (hash string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte(text), 0o500); err != nil {
		t.Fatal(err)
	}
	hash = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if err := os.Rename(file, bootstrap.Path(c.Programs(), hash)); err != nil {
		t.Fatal(err)
	}
	return hash
}

// A launch of an earlier version of Fairway does not say what it uses, so that nothing may
// go.
func TestCopiesStayWhileALaunchIsUnknown(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "pilots[1]")
	c := open(t, folder)
	way := c.must(t, "site.1")
	way.Connection.Program = ""
	if err := way.Connection.Write(way.File); err != nil {
		t.Fatal(err)
	}
	old := writeProgram(t, c, "another version")
	c.Keep([]string{"site.1"})
	if !slices.Contains(c.copies(), old) {
		t.Error("it went")
	}
}

// Whatever stands in the place of a connection file: it is not believed, what a link leads
// to is not touched, and the launch gets a token that nobody else has read.
func TestConnectionFilesThatAreWrong(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for name, spoil := range map[string]func(path string) error{
		"truncated":      func(path string) error { return os.Truncate(path, 20) },
		"empty":          func(path string) error { return os.Truncate(path, 0) },
		"group-readable": func(path string) error { return os.Chmod(path, 0o640) },
		"a link": func(path string) error {
			if err := os.Rename(path, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, path)
		},
		"of another launch": func(path string) error {
			c, err := access.ReadConnection(path)
			if err != nil {
				return err
			}
			c.Launch = "site.2"
			return c.Write(path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, filepath.Join(t.TempDir(), "pilots"))
			first := c.must(t, "site.1")
			if err := spoil(first.File); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(elsewhere)
			again := open(t, c.folder)
			second := again.must(t, "site.1")
			info, err := os.Lstat(second.File)
			if err != nil || info.Mode() != 0o600 {
				t.Error(info.Mode(), err)
			}
			if first.Connection.Token == second.Connection.Token || second.Connection.Launch != "site.1" {
				t.Error("it was believed:", second.Connection.Launch)
			}
			for launch, token := range map[string]access.Token{
				"site.1": first.Connection.Token,
				"site.2": first.Connection.Token,
			} {
				if _, err := again.Tokens.Check(launch, token); err == nil {
					t.Error("the token of the file is good for", launch)
				}
			}
			if after, _ := os.ReadFile(elsewhere); string(before) != string(after) {
				t.Error("what the link led to was changed")
			}
		})
	}
}
