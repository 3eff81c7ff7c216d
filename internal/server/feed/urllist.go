package feed

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/catalog"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/state"
)

// maxWrongLines bounds how many wrong lines of a URL list an error names.
const maxWrongLines = 10

type wrongLine struct {
	LFN string // if that is known
	Err error
}

// Listed is what a URL list has at a time.
type Listed struct {
	Files []flow.InputFile
	Wrong []wrongLine
	lines map[string]int // by LFN
	begun bool           // its last line has no end yet, and was left out
	// unended says that its last line has no end, and was taken all the same.
	unended bool
}

// Has reports whether a line has this name, also if the line is wrong.
func (l *Listed) Has(lfn string) bool { return l.lines[lfn] > 0 }

// Err tells of the wrong lines: of more than one, since others may be wrong for the
// same reason.
func (l *Listed) Err() error {
	if len(l.Wrong) == 0 {
		return nil
	}
	var told []string
	for _, line := range l.Wrong[:min(len(l.Wrong), maxWrongLines)] {
		told = append(told, line.Err.Error())
	}
	if more := len(l.Wrong) - len(told); more > 0 {
		told = append(told, fmt.Sprintf("and %d more lines like these", more))
	}
	return errors.New(strings.Join(told, "; "))
}

// listReader reads a list of URLs, paths, or logical names, one a line. Empty
// lines and lines that begin with # are passed over.
type listReader struct {
	find  *Finder
	in    *workflow.DeclaredInput
	rules *catalog.Catalog
	known Known // files that were fed need no second look
	found Listed
}

// ListFirst is List of a complete list, before what it has is fed. Whoever asks next gets the same,
// unless somebody has written to the list meanwhile.
func (f *Finder) ListFirst(ctx context.Context, in *workflow.DeclaredInput, known Known) (*Listed, error) {
	info, err := os.Stat(f.absolute(in.URLList))
	if err != nil {
		return nil, err
	}
	found, err := f.List(ctx, in, true, known)
	if err == nil {
		f.lists.keep(in.Name, readList{state.StampOf(info), found, known})
	}
	return found, err
}

// List reads a URL list. Unless it is complete, a last line without an end is
// left out: it may still be being written. An error says that the list itself
// cannot be read.
func (f *Finder) List(ctx context.Context, in *workflow.DeclaredInput, complete bool, known Known) (*Listed, error) {
	path := f.absolute(in.URLList)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if found := f.lists.take(in.Name, info, complete, known); found != nil {
		return found, nil
	}
	if err := Unfit(path); err != nil {
		return nil, err
	}
	list, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	rules, err := ReadCatalog(f.folder, in.Catalog)
	if err != nil {
		return nil, err
	}
	r := &listReader{find: f, in: in, rules: rules, known: known, found: Listed{lines: map[string]int{}}}
	lines := bufio.NewReader(list)
	for number := 1; ; number++ {
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if number == 1 {
			line = strings.TrimPrefix(line, "\ufeff") // some editors write it before the text
		}
		text := strings.TrimSpace(line)
		if err != nil && text != "" && !complete {
			r.found.begun = true
			return &r.found, nil
		}
		if text != "" && !strings.HasPrefix(text, "#") {
			r.take(ctx, text, number)
			r.found.unended = err != nil
		}
		if err != nil {
			return &r.found, ctx.Err()
		}
	}
}

func (r *listReader) take(ctx context.Context, line string, number int) {
	lfn, file, err := r.file(ctx, line, number)
	if err != nil {
		r.found.Wrong = append(r.found.Wrong, wrongLine{lfn, fmt.Errorf("%s:%d: %w", r.in.URLList, number, err)})
	} else if file != nil {
		r.found.Files = append(r.found.Files, *file)
	}
}

func (r *listReader) file(ctx context.Context, line string, number int) (lfn string, file *flow.InputFile, err error) {
	name := line
	if r.rules != nil && hasScheme(line) {
		if logical, back := r.rules.LFN(r.in.Catalog.Protocol, line); back == nil {
			name = logical
		}
	}
	lfn, fits, err := r.in.LFN(name)
	if err != nil {
		return "", nil, err
	}
	if !fits {
		return "", nil, fmt.Errorf("%s does not fit the pattern of the input", line)
	}
	if before := r.found.lines[lfn]; before > 0 {
		return lfn, nil, fmt.Errorf("%s would be called %s, as the file of line %d: tell them apart by placeholders in `as`",
			line, lfn, before)
	}
	r.found.lines[lfn] = number
	if _, ok := r.known.pfn(lfn); ok {
		return lfn, nil, nil
	}
	url, err := r.find.locate(r.in, r.rules, line)
	if err != nil {
		return lfn, nil, err
	}
	stated, err := r.find.stated(ctx, lfn, url)
	stated.Path = name
	return lfn, &stated, err
}
