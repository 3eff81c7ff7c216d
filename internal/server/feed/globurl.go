package feed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"fairway/internal/flow/workflow"
	"fairway/internal/server/folder"
	"fairway/internal/storage"
)

// remote returns the URLs of the files of an input that a pattern of a URL
// matches.
func (f *Finder) remote(ctx context.Context, in *workflow.DeclaredInput, glob string) ([]string, error) {
	found, err := globURL(ctx, f.element, glob)
	if err != nil {
		return nil, err
	}
	var fitting []string
	for _, url := range found {
		if _, fits, err := in.LFN(url); fits || err != nil {
			fitting = append(fitting, url)
		}
	}
	return fitting, nil
}

// globURL returns the files on a server that a pattern of [path.Match] matches,
// element by element, in no order. Host and bucket stand for themselves. Layout
// are listed only where the pattern leaves something open. It passes over what
// [folder.IsHidden] tells.
func globURL(ctx context.Context, element storage.Element, glob string) ([]string, error) {
	scheme, rest, _ := strings.Cut(glob, "://")
	quoted, rest, _ := strings.Cut(rest, "/")
	host, plain := literal(quoted)
	if !plain {
		return nil, fmt.Errorf("the host or bucket %q may have no placeholder", host)
	}
	elements := strings.Split(rest, "/")
	found := []string{scheme + "://" + host}
	for i, one := range elements {
		last := i == len(elements)-1
		var next []string
		for _, folder := range found {
			names, err := namesAt(ctx, element, folder, one, last)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				next = append(next, folder+"/"+name)
			}
		}
		found = next
	}
	return found, nil
}

// literal is the text that a pattern stands for, and whether it stands for that alone.
func literal(glob string) (text string, plain bool) {
	var b strings.Builder
	plain = true
	for i := 0; i < len(glob); i++ {
		switch {
		case glob[i] == '\\' && i+1 < len(glob):
			i++
		case strings.IndexByte(`*?[`, glob[i]) >= 0:
			plain = false
		}
		b.WriteByte(glob[i])
	}
	return b.String(), plain
}

// namesAt returns the names in a folder that one element of a pattern matches:
// files where it is the last one, and else folders.
func namesAt(ctx context.Context, element storage.Element, in, one string, last bool) ([]string, error) {
	if name, plain := literal(one); plain {
		return []string{name}, nil
	}
	entries, err := element.List(ctx, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", storage.Shown(in), err)
	}
	var names []string
	for _, e := range entries {
		fits, err := path.Match(one, e.Name)
		if err != nil {
			return nil, err
		}
		if fits && e.Folder != last && !folder.IsHidden(e.Name, one) {
			names = append(names, e.Name)
		}
	}
	return names, nil
}
