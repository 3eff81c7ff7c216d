//go:build linux

package console

import (
	"errors"
	"strings"

	"fairway/internal/cli/screen"
	"fairway/internal/site"
	"fairway/internal/yamlfile"
)

// FindSite is a site that a file describes, or that needs no description.
func FindSite(folder, name string) (*site.Site, error) {
	s, err := site.Find(folder, name)
	if unknown, ok := errors.AsType[*site.UnknownError](err); ok {
		return nil, Fail(ExitNotFound, unknown.Advice+"; `fairway site add "+name+" --system slurm` describes it",
			"there is no site %s in %s", name, strings.Join(Each(unknown.Files, screen.DisplayPath), " or "))
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		return nil, problems
	}
	return s, err
}

// Each makes one of each, in their order.
func Each[A, B any](all []A, make func(A) B) (made []B) {
	for _, a := range all {
		made = append(made, make(a))
	}
	return made
}
