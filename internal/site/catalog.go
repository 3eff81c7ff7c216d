package site

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/catalog"
)

// DefaultRules is the protocol of a catalogue for files that a program opens.
const DefaultRules = "direct"

// MaxCatalog bounds the file of a site's catalogue, which each pilot is given.
const MaxCatalog = 256 << 10

// readCatalog reads the file of the site's catalogue, if it has one. The error says what is wrong with it.
func (s *Site) readCatalog() error {
	if s.Catalog == "" && s.OutputFolder != "" {
		return fmt.Errorf("the site %s has `catalog_outputs` and no `catalog`: name the file of its catalogue, or leave "+
			"`catalog_outputs` out", s.Name)
	}
	if s.Catalog == "" {
		return nil
	}
	path := s.Catalog
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.File), path)
	}
	if err := s.takeCatalog(path); err != nil {
		return fmt.Errorf("the catalogue of the site %s: %w", s.Name, err)
	}
	return nil
}

func (s *Site) takeCatalog(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", path)
	case info.Size() > MaxCatalog:
		return fmt.Errorf("%s has %d bytes, at most %d: keep the rules of this site alone", path, info.Size(), MaxCatalog)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rules, err := catalog.Read(data, "", "")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if known := rules.Protocols(); !slices.Contains(known, s.CatalogRules) {
		return fmt.Errorf("%s has no rules for the protocol %q: name one of %s as `catalog_protocol`", path, s.CatalogRules,
			strings.Join(known, ", "))
	}
	s.CatalogText = string(data)
	s.OutputPlace, err = s.outputPlace(rules)
	s.rules = rules
	return err
}

// OutputPFN is the PFN that the catalogue of the site gives an output, by "/" and its name in the folder of
// outputs. The site has been read with an OutputFolder.
func (s *Site) OutputPFN(name string) (string, error) {
	return s.rules.PFN(s.CatalogRules, s.outputLFN(name))
}

func (s *Site) outputLFN(name string) string {
	return strings.TrimSuffix("/"+strings.Trim(s.OutputFolder, "/"), "/") + name
}

// sampleStore is as long as the name of the folder in which a state stores outputs.
const sampleStore = "/fairway-aaaaaaaaaaaaaaaa"

// outputPlace is where the catalogue leads the folder of outputs. Its rules are asked for the folder of a
// state there: many sites have rules only for what is in the folder of a user.
func (s *Site) outputPlace(rules *catalog.Catalog) (string, error) {
	if s.OutputFolder == "" {
		return "", nil
	}
	lfn := s.outputLFN(sampleStore)
	pfn, err := rules.PFN(s.CatalogRules, lfn)
	if err != nil {
		return "", fmt.Errorf("catalog_outputs: %w; name a folder that the site lets you write to", err)
	}
	place, ok := strings.CutSuffix(pfn, sampleStore)
	if !ok {
		return "", fmt.Errorf("catalog_outputs: %s becomes %s: its rules have to leave the end of a name as it is", lfn, pfn)
	}
	return strings.TrimPrefix(place, "file:"), nil
}
