// Package elements puts all storage elements together: the one place that knows
// which there are. Server and pilot take theirs from here, so a PFN means the same
// to both.
package elements

import (
	"fmt"
	"slices"

	"fairway/internal/storage"
	"fairway/internal/storage/s3"
	"fairway/internal/storage/web"
	"fairway/internal/storage/xrootd"
)

// ofNetworks are the elements without decoration, by their schemes.
func ofNetworks() map[storage.Element][]string {
	return map[storage.Element][]string{
		web.New(web.CredentialsOfUser()): {"http", "https", "dav", "davs"},
		s3.New(s3.ConfigOfUser):          {"s3"},
		new(xrootd.Element):              {"root", "roots", "xroot", "xroots"},
	}
}

// New returns an element for all schemes: those of local files; http, https, dav
// and davs; s3; root, roots, xroot and xroots. Those of a network are tried again
// as [storage.Retry] says, with pauses through sleep, and make at most
// [storage.DefaultTransfers] transfers at once with a server. Credentials are
// those of the user, and looked up when they are needed.
func New(places storage.Places, sleep storage.Sleep) storage.Schemes {
	all := storage.Local(places)
	for element, schemes := range ofNetworks() {
		limited := storage.Limit(storage.Retry(element, storage.DefaultTries, storage.DefaultBackoff, sleep), storage.DefaultTransfers, sleep)
		for _, scheme := range schemes {
			all[scheme] = limited
		}
	}
	return all
}

// Shelf returns what changes the contents of names in the element of a PFN: a
// [storage.Renamer] or a [storage.Conditional]. It tries nothing again.
func Shelf(pfn string) (storage.Element, error) {
	scheme := storage.Scheme(pfn)
	if scheme == "file" {
		return storage.File{}, nil
	}
	for element, schemes := range ofNetworks() {
		if slices.Contains(schemes, scheme) {
			return element, nil
		}
	}
	return nil, fmt.Errorf("%s: %w %q", storage.Shown(pfn), storage.ErrScheme, scheme)
}
