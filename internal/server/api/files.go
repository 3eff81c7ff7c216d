package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/flow/pattern"
	"fairway/internal/server/convert"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// DefaultFilesListed is how many files ListFiles returns when it is not told.
const DefaultFilesListed = 1000

// ListFiles tells where files are, and who makes and reads them. Where no server runs it
// looks for the stored ones, too.
func (s *Service) ListFiles(ctx context.Context, r *wire.ListFilesRequest) (*wire.ListFilesResponse, error) {
	a, err := s.of(ctx, r)
	if err != nil {
		return nil, err
	}
	names, err := a.filesNamed(ctx, r)
	if err != nil {
		return nil, err
	}
	limit := DefaultFilesListed
	if r.GetLimit() > 0 {
		limit = int(r.GetLimit())
	}
	response := &wire.ListFilesResponse{Total: int64(len(names)), More: len(names) > limit}
	response.Files, err = a.histories(ctx, names[:min(len(names), limit)])
	return response, err
}

// histories tell where files are. Where no server runs they look for the stored ones, too.
func (a *view) histories(ctx context.Context, names []string) (files []*wire.FileHistory, err error) {
	stored := map[string]*wire.FileVersion{} // by PFN
	var written []taskqueue.StoredFile
	err = a.lookAt(ctx, func(c *state.Cores) error {
		for _, lfn := range names {
			versions, _ := c.Dispatch.History(c.Run, lfn)
			file := &wire.FileHistory{Lfn: lfn, Versions: convert.Each(versions, fileVersion)}
			files = append(files, file)
			for i := range versions {
				if v := &versions[i]; v.Writer != 0 && v.PFN != "" {
					stored[v.PFN] = file.Versions[i]
					written = append(written, taskqueue.StoredFile{File: v.File, PFN: v.PFN, Size: v.Size, Adler32: v.Adler32})
				}
			}
		}
		return nil
	})
	if err != nil || a.control != nil { // a server looks when it begins, and whenever a job reads
		return files, err
	}
	for _, lost := range publish.LostFiles(ctx, a.roots, written, func(string) {}) {
		stored[lost.PFN].Lost = lost.Why
	}
	return files, rpcError(ctx.Err())
}

// FileSearch says which files of a run are wanted: those that have all that is given.
type FileSearch struct {
	Text    string // in the name, in lower or upper case
	Results bool   // only those that are published
	From    int    // so many are left out
	Limit   int
}

// FoundFiles are some of the files that were searched for, in the order of their names.
type FoundFiles struct {
	Files []*wire.FileHistory
	All   int // that were found
}

// SearchFiles finds files, and tells where they are.
func (s *Service) SearchFiles(ctx context.Context, run Page, q FileSearch) (*FoundFiles, error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	var names []string
	if q.Results {
		err = a.run.QueryTally(ctx, func(t *state.Tally) { names = t.AllPublished() })
	} else {
		err = a.run.Query(ctx, 0, func(c *state.Cores) { names = slices.Collect(c.Dispatch.Files(c.Run)) })
	}
	if err != nil {
		return nil, rpcError(err)
	}
	text := strings.ToLower(q.Text)
	names = slices.DeleteFunc(names, func(lfn string) bool { return !strings.Contains(strings.ToLower(lfn), text) })
	slices.Sort(names)
	found := &FoundFiles{All: len(names)}
	from := min(max(q.From, 0), len(names))
	found.Files, err = a.histories(ctx, names[from:min(from+q.Limit, len(names))])
	return found, err
}

// filesNamed are the names that match. They are compared beside the loop, which a million
// of them would hold up for seconds.
func (a *view) filesNamed(ctx context.Context, r *wire.ListFilesRequest) (names []string, err error) {
	exact := false
	err = a.lookAt(ctx, func(c *state.Cores) error {
		if _, exact = c.Dispatch.History(c.Run, r.GetPattern()); !exact {
			names = slices.Collect(c.Dispatch.Files(c.Run))
		}
		return nil
	})
	if exact {
		return []string{r.GetPattern()}, err
	}
	if err != nil {
		return nil, err
	}
	return matching(ctx, r.GetPattern(), names, func(lfn string) string { return lfn })
}

// matching are those of a list that have a name or, if none has, whose names fit it as a
// pattern; all if it is empty. It makes them of the list.
func matching[T any](ctx context.Context, named string, list []T, name func(T) string) ([]T, error) {
	if named == "" {
		return list, nil
	}
	isNamed := func(one T) bool { return name(one) == named }
	if slices.ContainsFunc(list, isNamed) {
		return slices.DeleteFunc(list, func(one T) bool { return !isNamed(one) }), rpcError(ctx.Err())
	}
	fits, err := pattern.Matching(named)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	var hard error
	list = slices.DeleteFunc(list, func(one T) bool {
		if ctx.Err() != nil || hard != nil {
			return true
		}
		var fit bool
		fit, hard = fits(name(one))
		return !fit
	})
	if hard != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%w; use * instead of some of them", hard))
	}
	return list, rpcError(ctx.Err())
}

func fileVersion(v taskqueue.VersionView) *wire.FileVersion {
	file := &wire.FileVersion{
		Version:     uint32(v.File.Version),
		State:       v.State,
		Size:        v.Size,
		Pfn:         v.PFN,
		Newest:      v.Newest,
		Published:   v.Published,
		CachesOnly:  v.CachesOnly,
		Temporary:   v.Temporary,
		Hosts:       v.Hosts,
		Readers:     convert.Each(v.Readers, jobRef),
		ReadersLeft: int64(v.ReadersLeft),
	}
	if v.Adler32 != 0 {
		file.Adler32 = fmt.Sprintf("%08x", v.Adler32)
	}
	if v.Lost {
		file.Lost = "the stored file was lost"
	}
	if v.Writer != 0 {
		file.Writer = jobRef(v.MadeBy)
	}
	return file
}

func jobRef(j taskqueue.JobRef) *wire.JobRef {
	return &wire.JobRef{Id: j.ID.Number(), Name: j.Name, State: j.State.String()}
}

// Versions tells where the versions of one file are, ascending. It does not look for stored ones.
func (s *Service) Versions(ctx context.Context, run Page, lfn string) (versions []*wire.FileVersion, err error) {
	a, err := s.of(ctx, run)
	if err != nil {
		return nil, err
	}
	return versions, a.lookAt(ctx, func(c *state.Cores) error {
		history, _ := c.Dispatch.History(c.Run, lfn)
		versions = convert.Each(history, fileVersion)
		return nil
	})
}
