// Package elements puts all storage elements together: the one place that knows
// which there are. Server and pilot take theirs from here, so a PFN means the same
// to both.
package elements

import (
	"fmt"

	"fairway/internal/storage"
	"fairway/internal/storage/s3"
	"fairway/internal/storage/web"
	"fairway/internal/storage/xrootd"
)

// ofNetworks are the elements without decoration.
func ofNetworks() map[storage.Protocol]storage.Element {
	return map[storage.Protocol]storage.Element{
		storage.HTTP:   web.New(web.CredentialsOfUser()),
		storage.S3:     s3.New(s3.ConfigOfUser),
		storage.XRootD: new(xrootd.Element),
	}
}

// New returns an element for all schemes: those of local files, and those of networks
// ([storage.Protocol]). The latter are tried again as [storage.Retry] says, with pauses
// through sleep, and make at most [storage.DefaultTransfers] transfers at once with a
// server. Credentials are those of the user, and looked up when they are needed.
func New(roots storage.Roots, sleep storage.Sleep) storage.Schemes {
	all := storage.Local(roots)
	for protocol, element := range ofNetworks() {
		retried := storage.Retry(element, storage.DefaultTries, storage.DefaultBackoff, sleep)
		limited := storage.Limit(retried, storage.DefaultTransfers, sleep)
		for _, scheme := range storage.SchemesOf(protocol) {
			all[scheme] = limited
		}
	}
	return all
}

// Publishing returns what changes the contents of names in the element of a PFN: a
// [storage.Renamer] or a [storage.Conditional]. It tries nothing again.
func Publishing(pfn string) (storage.Element, error) {
	scheme := storage.Scheme(pfn)
	if scheme == "file" {
		return storage.File{}, nil
	}
	if element := ofNetworks()[storage.ProtocolOf(pfn)]; element != nil {
		return element, nil
	}
	return nil, fmt.Errorf("%s: %w %q", storage.Shown(pfn), storage.ErrScheme, scheme)
}
