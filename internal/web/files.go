package web

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/logical"
	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// filesListed is how many files are on a page; filesPacked is how many a ZIP file asks for at a time.
const (
	filesListed = 100
	filesPacked = 1000
)

type filesBody struct {
	*wire.Summary
	Run    api.Page
	Search api.FileSearch
	Found  []fileRow
	All    int
}

type fileRow struct {
	*wire.FileVersion
	Lfn      string
	Versions int
}

// Stored reports whether the version can be had.
func (f fileRow) Stored() bool { return f.GetPfn() != "" && f.GetLost() == "" }

// fileSearch is what a request asks for: results, unless all files are wanted.
func fileSearch(r *http.Request) api.FileSearch {
	return api.FileSearch{Text: r.FormValue("text"), Results: r.FormValue("show") != "all", From: number(r, "from")}
}

// files tells which files the run has, and where they are. It is not kept up to date.
func (s *site) files(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	q := fileSearch(r)
	q.Limit = filesListed
	found, err := s.Service.SearchFiles(r.Context(), c.Run, q)
	if err != nil {
		return nil, err
	}
	body := &filesBody{Summary: o.Report.GetSummary(), Run: c.Run, Search: q, All: found.All}
	for _, file := range found.Files {
		if len(file.GetVersions()) > 0 {
			body.Found = append(body.Found, fileRow{newest(file), file.GetLfn(), len(file.GetVersions())})
		}
	}
	c.Title, c.Body, c.Over = "Files", body, true
	return c, nil
}

func newest(file *wire.FileHistory) *wire.FileVersion {
	for _, v := range file.GetVersions() {
		if v.GetNewest() {
			return v
		}
	}
	return file.GetVersions()[len(file.GetVersions())-1]
}

// Query is what follows the address of a page of the same files; from is where it begins.
func (b *filesBody) Query(from int) string {
	q := url.Values{}
	if b.Search.Text != "" {
		q.Set("text", b.Search.Text)
	}
	if !b.Search.Results {
		q.Set("show", "all")
	}
	if from > 0 {
		q.Set("from", strconv.Itoa(from))
	}
	return "?" + q.Encode()
}

// Next is where the page after begins; 0: there is none.
func (b *filesBody) Next() int {
	if next := b.Search.From + filesListed; next < b.All {
		return next
	}
	return 0
}

// Before is where the page before begins.
func (b *filesBody) Before() int { return max(0, b.Search.From-filesListed) }

func fileLink(run api.Page, lfn string, version uint32) string {
	q := url.Values{"name": {lfn}, "version": {strconv.FormatUint(uint64(version), 10)}}
	return runPath(run) + "/file?" + q.Encode()
}

// nameOfCopy is that of a file, or of the ZIP file that holds a folder.
func nameOfCopy(lfn string) string {
	if logical.IsFolder(lfn) {
		return logical.Path(lfn) + logical.FolderSuffix
	}
	return lfn
}

func (s *site) file(w http.ResponseWriter, r *http.Request) {
	run, err := runOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	lfn := r.FormValue("name")
	request := &wire.FetchRequest{Run: uint32(run), Lfn: lfn}
	if version, err := strconv.ParseUint(r.FormValue("version"), 10, 32); err == nil {
		number := uint32(version)
		request.Version = &number
	}
	out := newDownload(w, path.Base(nameOfCopy(lfn)), "application/octet-stream")
	copied := &checked{to: out.write}
	err = s.Service.FetchFile(r.Context(), request, func(chunk *wire.FetchChunk) error {
		if v := chunk.GetVersion(); v.GetWriter() != nil {
			out.size = v.GetSize()
		}
		return copied.take(chunk)
	})
	if err == nil {
		err = copied.end(lfn)
	}
	out.end(s, r, err)
}

// filesZIP has a browser store the files that were searched for, as one ZIP file.
func (s *site) filesZIP(w http.ResponseWriter, r *http.Request) {
	run, err := runOf(r)
	q := fileSearch(r)
	q.From, q.Limit = 0, filesPacked
	var found *api.FoundFiles
	if err == nil {
		found, err = s.Service.SearchFiles(r.Context(), run, q)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	out := newDownload(w, fmt.Sprintf("run-%d.zip", run), "application/zip")
	pack := &packed{site: s, run: run, zip: zip.NewWriter(out)}
	for err == nil {
		for _, file := range found.Files {
			if err = pack.add(r.Context(), file); err != nil {
				break
			}
		}
		if q.From += filesPacked; err != nil || q.From >= found.All {
			break
		}
		found, err = s.Service.SearchFiles(r.Context(), run, q)
	}
	if err == nil {
		err = pack.end()
	}
	out.end(s, r, err)
}

type packed struct {
	site    *site
	run     api.Page
	zip     *zip.Writer
	missing []string // files that are not stored, and why
}

// missingName is the file that tells which are not in a ZIP file.
const missingName = "NOT-STORED.txt"

// add adds the newest version of a file; one that is not stored is noted.
func (p *packed) add(ctx context.Context, file *wire.FileHistory) error {
	if len(file.GetVersions()) == 0 {
		return nil
	}
	version := newest(file).GetVersion()
	var to io.Writer
	copied := &checked{to: func(data []byte) error {
		_, err := to.Write(data)
		return err
	}}
	request := &wire.FetchRequest{Run: uint32(p.run), Lfn: file.GetLfn(), Version: &version}
	err := p.site.Service.FetchFile(ctx, request, func(chunk *wire.FetchChunk) (err error) {
		if to == nil {
			if to, err = p.zip.CreateHeader(&zip.FileHeader{Name: nameOfCopy(file.GetLfn()), Method: zip.Store}); err != nil {
				return err
			}
		}
		return copied.take(chunk)
	})
	if err != nil && to == nil && ctx.Err() == nil {
		p.missing = append(p.missing, file.GetLfn()+": "+textOf(err))
		return nil
	}
	if err == nil {
		err = copied.end(file.GetLfn())
	}
	return err
}

func (p *packed) end() error {
	if len(p.missing) > 0 {
		w, err := p.zip.Create(missingName)
		if err == nil {
			_, err = io.WriteString(w, strings.Join(p.missing, "\n")+"\n")
		}
		if err != nil {
			return err
		}
	}
	return p.zip.Close()
}

// checked passes on what is stored of a file. The last piece waits until the checksum is known to be
// right, so that nobody takes what is wrong for complete.
type checked struct {
	to   func([]byte) error
	want string
	sum  hash.Hash32
	held []byte
}

func (c *checked) take(chunk *wire.FetchChunk) error {
	if c.sum == nil {
		c.want, c.sum = chunk.GetVersion().GetAdler32(), adler32.New()
	}
	if len(c.held) > 0 {
		if err := c.to(c.held); err != nil {
			return err
		}
	}
	_, _ = c.sum.Write(chunk.GetData())
	c.held = append(c.held[:0], chunk.GetData()...)
	return nil
}

// end passes on the last piece of a file.
func (c *checked) end(lfn string) error {
	if c.sum == nil || c.want != "" && c.want != fmt.Sprintf("%08x", c.sum.Sum32()) {
		return connect.NewError(connect.CodeDataLoss, fmt.Errorf("%s holds other bytes than its job stored", lfn))
	}
	return c.to(c.held)
}

// download is an answer that a browser stores.
type download struct {
	w       http.ResponseWriter
	control *http.ResponseController
	name    string
	kind    string
	size    int64 // 0: it is not known before
	begun   bool
}

func newDownload(w http.ResponseWriter, name, kind string) *download {
	return &download{w: w, control: http.NewResponseController(w), name: name, kind: kind}
}

// Write is part of io.Writer. Who reads it has writeTime for each piece.
func (d *download) Write(data []byte) (int, error) {
	if !d.begun {
		d.begin()
	}
	_ = d.control.SetWriteDeadline(time.Now().Add(writeTime))
	return d.w.Write(data)
}

func (d *download) write(data []byte) error {
	_, err := d.Write(data)
	return err
}

func (d *download) begin() {
	d.begun = true
	h := d.w.Header()
	h.Set("Content-Type", d.kind)
	attachment := mime.FormatMediaType("attachment", map[string]string{"filename": d.name})
	h.Set("Content-Disposition", cmp.Or(attachment, "attachment"))
	if d.size > 0 {
		h.Set("Content-Length", strconv.FormatInt(d.size, 10))
	}
}

// end completes the answer, or has it fail: after an error a browser keeps nothing of it.
func (d *download) end(s *site, r *http.Request, err error) {
	switch {
	case err == nil && !d.begun:
		d.begin()
	case err != nil && !d.begun:
		s.fail(d.w, err)
	case err != nil:
		if !errors.Is(err, context.Canceled) && r.Context().Err() == nil {
			s.Log.Warn("a file could not be sent to a browser", "file", d.name, "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}
