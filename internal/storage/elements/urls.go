package elements

import (
	"context"
	"fmt"
	"time"

	"fairway/internal/storage"
	"fairway/internal/storage/s3"
	"fairway/internal/storage/web"
	"fairway/internal/storage/xrootd"
)

// URLs gives the URLs by which programs read files from the elements of networks
// themselves. Any goroutine may use it.
type URLs struct{ objects *s3.Element }

// NewURLs returns URLs with the credentials of the user, which are looked up when they are
// needed.
func NewURLs() *URLs { return &URLs{s3.New(s3.ConfigOfUser)} }

// Of is a URL with http, https, root or roots by which a program reads the file of a PFN:
// with the credentials of its own environment, but for S3. There the query of the URL
// permits whoever has it to read this one file, for so long; it is good for at most
// [s3.MaxPresigned]. A query may be secret: what is shown, recorded or an argument of
// another process must not have it. The URL has no white space, unless the name of a file
// of XRootD has.
func (u *URLs) Of(ctx context.Context, pfn string, lasts time.Duration) (string, error) {
	switch storage.ProtocolOf(pfn) {
	case storage.HTTP:
		return web.URL(pfn)
	case storage.XRootD:
		return xrootd.URL(pfn)
	case storage.S3:
		return u.objects.URL(ctx, pfn, lasts)
	}
	return "", fmt.Errorf("%s: %w %q", storage.Shown(pfn), storage.ErrScheme, storage.Scheme(pfn))
}
