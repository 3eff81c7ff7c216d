// Command release writes what a release has beside the program: man pages, completions of shells,
// and the licences of all that is linked in. scripts/release.sh calls it:
//
//	go run ./scripts/release FOLDER
//
// FOLDER gets man1/, completions/ and licenses/. What it writes depends on the source alone; the date
// of the man pages is SOURCE_DATE_EPOCH.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra/doc"

	"fairway/internal/cli"
	"fairway/internal/cli/console"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: release FOLDER")
		os.Exit(2)
	}
	folder := os.Args[1]
	if err := errors.Join(manPages(folder), completions(folder), licences(folder)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func manPages(folder string) error {
	pages := filepath.Join(folder, "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	root := cli.Commands()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Title: "FAIRWAY", Section: "1", Source: "Fairway " + console.Release},
		pages)
}

func completions(folder string) error {
	folder = filepath.Join(folder, "completions")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root := cli.Commands()
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(folder, "fairway.bash"), true),
		root.GenZshCompletionFile(filepath.Join(folder, "_fairway")),
		root.GenFishCompletionFile(filepath.Join(folder, "fairway.fish"), true),
	)
}

// module is what the Go command tells of the module of a package.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// licences copies the licences of all modules that are linked in, and of Go.
func licences(folder string) error {
	folder = filepath.Join(folder, "licenses")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	modules, err := linked()
	if err != nil {
		return err
	}
	modules = append(modules, module{Path: "go", Version: runtime.Version(), Dir: runtimeRoot()})
	for _, m := range modules {
		if err := copyLicences(m, folder); err != nil {
			return err
		}
	}
	return nil
}

// linked are the modules of which a program has packages on any platform that is released, sorted.
func linked() ([]module, error) {
	found := map[string]module{}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64"} {
		system, processor, _ := strings.Cut(platform, "/")
		command := exec.Command("go", "list", "-deps", "-json=Module", "./cmd/fairway")
		command.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0")
		command.Stderr = os.Stderr
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("list what is linked in: %w", err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if m := p.Module; m != nil && !m.Main && m.Path != "fairway/lib" {
				found[m.Path] = *m
			}
		}
	}
	var all []module
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func runtimeRoot() string {
	out, _ := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(out))
}

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)
	noFileName  = regexp.MustCompile(`[^A-Za-z0-9.@-]+`)
)

func copyLicences(m module, folder string) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("licence of %s: %w", m.Path, err)
	}
	copied := 0
	for _, e := range entries {
		if e.IsDir() || !licenceFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		name := noFileName.ReplaceAllString(m.Path+"@"+m.Version, "_") + "." + e.Name()
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			return err
		}
		copied++
	}
	if copied == 0 {
		return fmt.Errorf("%s has no licence in %s: it cannot be released", m.Path, m.Dir)
	}
	return nil
}
