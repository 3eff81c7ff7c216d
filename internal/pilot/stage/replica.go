package stage

import (
	"context"

	"fairway/internal/catalog"
	"fairway/internal/logical"
	"fairway/internal/storage"
)

// SiteCatalog is the Trivial File Catalog of a site (paper 3, section IV), by which one LFN has another
// PFN at each site.
type SiteCatalog struct {
	Rules    *catalog.Catalog
	Protocol string // whose rules are taken
}

// pfn is where a file is at the site, and false where no rule leads to it.
func (c *SiteCatalog) pfn(lfn string) (string, bool) {
	pfn, err := storage.NameBy(func(lfn string) (string, error) { return c.Rules.PFN(c.Protocol, lfn) }, lfn)
	if err != nil {
		return "", false
	}
	if storage.Scheme(pfn) != "file" {
		return pfn, true
	}
	path, err := storage.Path(pfn)
	return storage.SiteScheme + ":" + path, err == nil
}

// atSite has an input from outside read from where the catalogue of the site says that it is, if a file of
// the right size is there. Its state is not that of the file that the run took up: size, and what is known
// of the contents, tell that it is the same.
func (ar *Area) atSite(ctx context.Context, i *input) {
	if ar.Catalog == nil || i.madeByJob() || i.pfn == "" || i.hit || i.linked || logical.IsFolder(i.LFN) {
		return
	}
	pfn, ok := ar.Catalog.pfn(i.LFN)
	if !ok || pfn == i.pfn {
		return
	}
	if ar.Cache != nil {
		if i.cached, i.hit = ar.Cache.Get(ctx, i.Item); i.hit {
			return
		}
	}
	i.home, i.pfn = i.pfn, pfn
	info, err := ar.Storage.Stat(ctx, pfn)
	if err == nil && i.Size > 0 && info.Size >= 0 && info.Size != i.Size {
		err = i.wrongSize(info.Size)
	}
	if err != nil {
		ar.leaveReplica(i, err)
	}
}

// leaveReplica has an input read from where the run found it. It reports false for one that already is.
func (ar *Area) leaveReplica(i *input, why error) bool {
	if i.home == "" {
		return false
	}
	ar.Log.Warn("what the catalogue of the site leads to is not read", "lfn", i.LFN, "pfn", ar.Roots.Shown(i.pfn),
		"reason", why)
	i.pfn, i.home = i.home, ""
	return true
}

// state is the tag that tells the state of the stored file, and 0 for a replica.
func (i *input) state() uint64 {
	if i.home != "" {
		return 0
	}
	return i.Tag
}
