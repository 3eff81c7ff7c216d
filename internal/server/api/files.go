package api

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/server/convert"
	"fairway/internal/server/publish"
	"fairway/internal/server/state"
	"fairway/internal/wire"
)

// DefaultFilesListed is how many files ListFiles returns when it is not told.
const DefaultFilesListed = 1000

// ListFiles tells where files are, and who makes and reads them. Where no server runs it
// looks for the stored ones, too.
func (a *Service) ListFiles(ctx context.Context, r *wire.ListFilesRequest) (*wire.ListFilesResponse, error) {
	response := new(wire.ListFilesResponse)
	stored := map[string]*wire.FileVersion{} // by PFN
	var written []dispatch.StoredFile
	take := func(h dispatch.FileHistory) {
		file := &wire.FileHistory{Lfn: h.LFN, Versions: convert.Each(h.Versions, fileVersion)}
		response.Files = append(response.Files, file)
		for i := range h.Versions {
			if v := &h.Versions[i]; v.Writer != 0 && v.PFN != "" {
				stored[v.PFN] = file.Versions[i]
				written = append(written, dispatch.StoredFile{File: v.File, PFN: v.PFN, Size: v.Size, Adler32: v.Adler32})
			}
		}
	}
	err := a.lookAt(ctx, r, func(c *state.Cores) error {
		if h, ok := c.Dispatch.History(c.Run, r.GetPattern()); ok {
			response.Total = 1
			take(h)
			return nil
		}
		fits, err := flow.Matching(r.GetPattern())
		if err != nil {
			return connect.NewError(connect.CodeInvalidArgument, err)
		}
		limit := int64(DefaultFilesListed)
		if r.GetLimit() > 0 {
			limit = int64(r.GetLimit())
		}
		for lfn := range c.Dispatch.Files(c.Run) {
			if r.GetPattern() != "" && !fits(lfn) {
				continue
			}
			if response.Total++; response.Total > limit {
				response.More = true
				continue
			}
			h, _ := c.Dispatch.History(c.Run, lfn)
			take(h)
		}
		return nil
	})
	if err != nil || a.control != nil { // a server looks when it begins, and whenever a job reads
		return response, err
	}
	for _, lost := range publish.LostFiles(ctx, a.places, written, func(string) {}) {
		stored[lost.PFN].Lost = lost.Why
	}
	return response, rpcError(ctx.Err())
}

func fileVersion(v dispatch.VersionView) *wire.FileVersion {
	file := &wire.FileVersion{
		Version:     uint32(v.File.Version),
		State:       v.State,
		Size:        v.Size,
		Pfn:         v.PFN,
		Newest:      v.Newest,
		Published:   v.Published,
		CachesOnly:  v.CachesOnly,
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

func jobRef(j dispatch.JobRef) *wire.JobRef {
	return &wire.JobRef{Id: j.ID.Number(), Name: j.Name, State: j.State.String()}
}
