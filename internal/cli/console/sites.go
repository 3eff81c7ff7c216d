//go:build linux

package console

import (
	"errors"
	"strings"

	"fairway/internal/cli/screen"
	"fairway/internal/provision"
	"fairway/internal/server/convert"
	"fairway/internal/site"
	"fairway/internal/yamlfile"
)

// FindSite is a site that a file describes, or that needs no description.
func FindSite(folder, name string) (*site.Site, error) {
	s, err := site.Find(folder, name)
	return s, OfSites(err)
}

// OfSites says what to do where an error is one of sites.
func OfSites(err error) error {
	if unknown, ok := errors.AsType[*site.UnknownError](err); ok {
		return Fail(ExitNotFound, unknown.Advice+"; `fairway site add "+unknown.Name+" --system slurm` describes it",
			"there is no site %s in %s", unknown.Name, strings.Join(convert.Each(unknown.Files, screen.DisplayPath), " or "))
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		return problems
	}
	if failed, ok := errors.AsType[*provision.UsageError](err); ok {
		return &Failure{Code: ExitUsage, Err: failed, Hint: failed.Instead}
	}
	return err
}
