// Package elements puts all storage elements together: the one place that knows
// which there are. Server and pilot take theirs from here, so a PFN means the same
// to both.
package elements

import (
	"sync"

	"fairway/internal/storage"
	"fairway/internal/storage/s3"
	"fairway/internal/storage/web"
	"fairway/internal/storage/xrootd"
)

// New returns an element for all schemes: those of local files; http, https, dav
// and davs; s3; root, roots, xroot and xroots. Those of a network are tried again
// as [storage.Retry] says, with pauses through sleep, and make at most
// [storage.DefaultTransfers] transfers at once with a server. Credentials are
// those of the user, and looked up when a scheme is first used.
func New(places storage.Places, sleep storage.Sleep) storage.Schemes {
	all := storage.Local(places)
	for element, schemes := range map[storage.Element][]string{
		web.New(web.CredentialsOfUser()):         {"http", "https", "dav", "davs"},
		s3.New(sync.OnceValues(s3.ConfigOfUser)): {"s3"},
		xrootd.Element{}:                         {"root", "roots", "xroot", "xroots"},
	} {
		limited := storage.Limit(storage.Retry(element, storage.DefaultTries, storage.DefaultBackoff, sleep), storage.DefaultTransfers)
		for _, scheme := range schemes {
			all[scheme] = limited
		}
	}
	return all
}
