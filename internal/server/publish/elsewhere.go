package publish

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/internal/archive"
	"fairway/internal/disk"
	"fairway/internal/fault"
	"fairway/internal/logical"
	"fairway/internal/server/folder"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
)

// Results may be published elsewhere than in the results folder: under the plain
// names beneath a PFN of any element. There another server of the same state may be
// publishing too: one that was frozen, and does not know that its state was taken
// over. It must not undo what was published since. So each server takes a number,
// higher than that of any before, durably before it publishes, and the element makes
// the step that counts:
//
//   - A [storage.Renamer] renames a file out of the folder of the server's number. A
//     server that takes over puts a file in the place of that folder first: then what
//     the other one had ready is gone, and it can make nothing ready any more.
//   - A [storage.Conditional] writes if what stands there is what the server believes.
//     It believes what it has recorded, or what the labels of a file tell: that it is
//     of this state, and of no higher number.
//
// Before that step a record says what is going to stand there, so that a server which
// goes on knows what it finds.

const (
	// elsewhereTable has what stands elsewhere: by place and LFN, standing.
	elsewhereTable = "server_elsewhere"
	// turnTable has by place the numbers of servers: turns.
	turnTable = "server_turns"
)

// Labels of a file on a Conditional.
const (
	labelState = "fairway-state" // identity
	labelTurn  = "fairway-turn"  // number of the server
	labelFile  = "fairway-file"  // version and PFN of what was stored
)

// FolderSuffix is what a result that is a folder has behind its name elsewhere,
// where it is one file: the archive that holds it.
const FolderSuffix = logical.FolderSuffix

var beforeReplace = fault.New("publish.elsewhere.before")

// standing is what this state has put under a name elsewhere, or has found there.
type standing struct {
	Place, LFN string
	At         string            `json:"at,omitempty"`    // the PFN, where a catalogue gives it
	State      string            `json:"state,omitempty"` // identity; another one: of the state that this is a copy of
	Found      bool              `json:"found,omitempty"` // somebody else put the same there: it stays
	PFN        string            `json:"pfn,omitempty"`   // of the stored file; empty: nothing yet
	Version    taskqueue.Version `json:"version,omitempty"`
	Mark       string            `json:"mark,omitempty"` // of what stands there
	Kept       bool              `json:"kept,omitempty"`
	Next       *intent           `json:"next,omitempty"` // what is going to stand there, or already does
}

// intent is a publication that was begun.
type intent struct {
	PFN     string            `json:"pfn"`
	Version taskqueue.Version `json:"version"`
	Mark    string            `json:"mark,omitempty"` // of the new file, on a Renamer
}

func (s standing) done(mark string) standing {
	s.PFN, s.Version, s.Mark, s.Found, s.Next = s.Next.PFN, s.Next.Version, mark, false, nil
	return s
}

// found is how things stand where somebody else has put the contents of a stored file.
func (s standing) found(b *taskqueue.StoredFile, mark string) standing {
	s.PFN, s.Version, s.Mark, s.Found, s.Next = b.PFN, b.File.Version, mark, true, nil
	return s
}

// own reports whether this state has put something under the name, or was about to.
func (s *standing) own() bool { return s.Next != nil || s.PFN != "" && !s.Found }

// turns are the numbers of servers that publish at one place.
type turns struct {
	Place string
	State string `json:"state,omitempty"` // identity
	Last  uint64
	Open  []uint64 `json:"open,omitempty"` // of servers that have not ended in order
	// Fenced says that files stand in the places of the folders of earlier servers. They
	// stay until the state is cleaned: nobody knows when the last frozen server has gone.
	Fenced bool `json:"fenced,omitempty"`
}

// left reports whether servers may have left something at the place.
func (t *turns) left() bool { return t.Fenced || len(t.Open) > 0 }

// destination publishes at one place.
type destination struct {
	place   string                                    // a PFN without a slash at its end
	known   string                                    // the same, as it is recorded (folder.Layout.Recorded)
	catalog func(name string) (pfn string, err error) // by "/" and names; nil: results are beneath place
	of      string                                    // how PFNs begin of what is published there: of one place of outputs
	state   string                                    // identity
	shelf   storage.Element
	files   storage.Element // reads stored files
	at      folder.Layout
	persist func(ctx context.Context, records ...taskqueue.Record) error // makes records durable

	turns turns
	mine  uint64 // 0: not yet taken

	mu        sync.Mutex // guards standings: the loop asks how they stand, too
	standings map[string]standing
}

func (e *destination) get(lfn string) (now standing, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, ok = e.standings[lfn]
	return now, ok
}

// ErrTakenOver says that another server of the same state publishes by now.
var ErrTakenOver = errors.New("another server has taken over this workflow, and publishes its results")

// ParsePlace gives the place that a person means, as a PFN.
func ParsePlace(text string) (string, error) {
	if strings.Contains(text, "://") {
		if _, err := storage.ParseURL(text); err != nil {
			return "", err
		}
		if strings.ContainsAny(text, "?#") {
			return "", fmt.Errorf("%s: results have names of their own behind this: leave out what begins with '?' or '#'",
				storage.Shown(text))
		}
		if _, err := shelfOf(text); err != nil {
			return "", err
		}
		return strings.TrimRight(text, "/"), nil
	}
	if storage.Scheme(text) != "file" || strings.HasPrefix(text, "file:") {
		return "", fmt.Errorf("%s: write a folder, or the URL of one, as in s3://bucket/results", storage.Shown(text))
	}
	text, err := ofHome(text)
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(text)
	return "file:" + absolute, err
}

// ofHome puts the home folder of the user in the place of ~, which no shell does in
// --storage=~/x.
func ofHome(text string) (string, error) {
	user, rest, _ := strings.Cut(text, "/")
	switch {
	case !strings.HasPrefix(user, "~"):
		return text, nil
	case user != "~":
		return "", fmt.Errorf("%s: the home folder of another user is not looked up: write its path, or ./%s for a folder "+
			"of that name", text, text)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%s: %w; write the path of the folder", text, err)
	}
	return filepath.Join(home, rest), nil
}

// name is the PFN of a result: under which it stands, or that it is to have.
func (e *destination) name(lfn string) string {
	if now, ok := e.get(lfn); ok && now.At != "" {
		return e.at.Absolute(now.At)
	}
	pfn, err := e.wanted(lfn)
	if err != nil { // who publishes it is told
		return e.under(lfn)
	}
	return pfn
}

// wanted is the PFN that a result is to have.
func (e *destination) wanted(lfn string) (string, error) {
	if logical.IsFolder(lfn) {
		lfn = archive.Clean(lfn) + FolderSuffix
	}
	if e.catalog == nil {
		return e.under(lfn), nil
	}
	pfn, err := storage.NameBy(e.catalog, lfn)
	if path, pathErr := storage.Path(pfn); err == nil && pathErr == nil {
		pfn = "file:" + path
	}
	if err == nil && origin(pfn) != origin(e.place) {
		err = fmt.Errorf("the catalogue leads to %s, which is not where `catalog_outputs` leads: to %s", storage.Shown(pfn),
			shownPlace(e.place))
	}
	return pfn, err
}

// origin is the scheme of a PFN and the server that has it.
func origin(pfn string) string {
	scheme, rest, url := strings.Cut(pfn, "://")
	if !url {
		return storage.Scheme(pfn)
	}
	server, _, _ := strings.Cut(rest, "/")
	return strings.ToLower(scheme + "://" + server)
}

func (e *destination) under(name string) string {
	return storage.Join(e.place, escapedFor(e.place, path.Clean(name)))
}

func escapedFor(place, name string) string {
	if storage.IsEscaped(place) {
		return (&url.URL{Path: name}).EscapedPath()
	}
	return name
}

func (e *destination) load(ctx context.Context, source state.Source) error {
	e.known = e.at.Recorded(e.place)
	e.standings, e.turns = map[string]standing{}, turns{Place: e.known}
	all, err := standingsIn(ctx, source, e.state)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Place == e.known {
			e.standings[s.LFN] = s
		}
	}
	taken, err := turnsIn(ctx, source, e.state)
	for _, t := range taken {
		if t.Place == e.known {
			e.turns = t
		}
	}
	return err
}

func turnsIn(ctx context.Context, source state.Source, id string) ([]turns, error) {
	all, err := state.LoadAll[turns](ctx, source, turnTable)
	return slices.DeleteFunc(all, func(t turns) bool { return t.State != id }), err
}

// standingsIn are all that the state of an identity has published elsewhere. What its
// store has from the state that it is a copy of is none of it.
func standingsIn(ctx context.Context, source state.Source, id string) ([]standing, error) {
	all, err := state.LoadAll[standing](ctx, source, elsewhereTable)
	return slices.DeleteFunc(all, func(s standing) bool { return s.State != id }), err
}

// take gives this server its number, and keeps all that came before from going on.
func (e *destination) take(ctx context.Context) error {
	if e.mine == 0 {
		next := e.turns
		next.Last, next.Open = e.turns.Last+1, append(slices.Clone(e.turns.Open), e.turns.Last+1)
		if err := e.recordTurns(ctx, next); err != nil {
			return err
		}
		e.mine = next.Last
		if conditions, ok := e.shelf.(interface {
			CheckConditions(context.Context, string) error
		}); ok {
			if err := conditions.CheckConditions(ctx, e.checkName()); err != nil {
				e.mine = 0
				return err
			}
		}
	}
	next := e.turns
	if shelf, ok := e.shelf.(storage.Renamer); ok {
		for _, number := range e.turns.Open {
			if number == e.mine {
				continue
			}
			if err := e.fence(ctx, shelf, number); err != nil {
				return fmt.Errorf("keeping an earlier server of this workflow from publishing: %w", err)
			}
			next.Fenced = true
		}
	}
	if len(e.turns.Open) > 1 {
		next.Open = []uint64{e.mine}
		return e.recordTurns(ctx, next)
	}
	return nil
}

func (e *destination) recordTurns(ctx context.Context, next turns) error {
	next.State = e.state
	record, err := state.NewRecord(turnTable, 0, e.known, next)
	if err == nil {
		err = e.persist(ctx, record)
	}
	if err == nil {
		e.turns = next
	}
	return err
}

// workName is the folder in which files get ready; it begins with a dot, and so
// matches no pattern.
func (e *destination) workName() string { return ".fairway-publishing-" + e.state }

func (e *destination) checkName() string { return e.under(e.workName() + "-check") }

func (e *destination) workFolder(number uint64) string {
	return e.under(e.workName() + "/" + strconv.FormatUint(number, 10))
}

// fenceTries bounds how often a server that is not frozen but still publishing may
// be quicker than the one that takes over.
const fenceTries = 100

// fence puts a file in the place of the folder of an earlier server.
func (e *destination) fence(ctx context.Context, shelf storage.Renamer, number uint64) error {
	folder := e.workFolder(number)
	text := e.scratch()
	err := os.WriteFile(text, []byte("taken over\n"), 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(text) }()
	for range fenceTries {
		if _, err := e.files.Stat(ctx, folder); err == nil {
			return nil // a file stands there
		}
		if err := removeAll(ctx, e.files, shelf, folder, 1); err != nil {
			return err
		}
		put := e.files.Put(ctx, text, folder)
		if _, stat := e.files.Stat(ctx, folder); put == nil && stat == nil {
			return nil
		}
		if entries, list := e.files.List(ctx, folder); list != nil || len(entries) == 0 {
			err = put
		}
	}
	return errors.Join(err, fmt.Errorf("%s: it is filled again and again", storage.Shown(folder)))
}

func removeAll(ctx context.Context, element storage.Element, shelf storage.Renamer, pfn string, depth int) error {
	entries, err := element.List(ctx, pfn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch {
		case entry.Folder && depth == 0:
			err = fmt.Errorf("%s: there are folders in it", storage.Shown(pfn))
		case entry.Folder:
			err = removeAll(ctx, element, shelf, pfn+"/"+entry.Name, depth-1)
		default:
			err = element.Remove(ctx, pfn+"/"+entry.Name)
		}
		if err != nil {
			return err
		}
	}
	return shelf.RemoveFolder(ctx, pfn)
}

// publishAll publishes in order. It returns how many of the first ones are published,
// and why the next is not.
func (e *destination) publishAll(ctx context.Context, batch []taskqueue.StoredFile) (done int, err error) {
	if err := e.take(ctx); err != nil {
		return 0, fmt.Errorf("publishing to %s: %w", shownPlace(e.place), err)
	}
	for _, b := range batch {
		if err := e.publish(ctx, &b); err != nil {
			return done, fmt.Errorf("publishing %s: %w", shownPlace(e.name(b.File.LFN)), err)
		}
		done++
	}
	return done, nil
}

func (e *destination) publish(ctx context.Context, b *taskqueue.StoredFile) error {
	if !filepath.IsLocal(b.File.LFN) {
		return errors.New("its name leads out of the place of the results")
	}
	now, err := e.leave(ctx, b.File.LFN)
	if err != nil {
		return err
	}
	if now.PFN == b.PFN && now.Next == nil {
		if mark, err := e.mark(ctx, b.File.LFN); err == nil && mark == now.Mark {
			return nil
		}
	}
	now.Place, now.LFN, now.State, now.Kept = e.known, b.File.LFN, e.state, false
	if err := asReported(e.at.Roots(), b); err != nil {
		return err
	}
	local, release, err := e.local(ctx, b.PFN)
	if err != nil {
		return err
	}
	defer release()
	if err := pathAsWritten(local, b); err != nil {
		return err
	}
	switch shelf := e.shelf.(type) {
	case storage.Renamer:
		if err = e.rename(ctx, shelf, b, now, local); err == nil {
			return nil
		}
		if _, fenced := e.files.Stat(ctx, e.workFolder(e.mine)); fenced == nil {
			return ErrTakenOver
		}
		return err
	case storage.Conditional:
		return e.replace(ctx, shelf, b, now, local)
	}
	return fmt.Errorf("%w: results cannot be published there", storage.ErrReadOnly)
}

// leave tells how a name stands. What stands where the catalogue does not lead any more goes.
func (e *destination) leave(ctx context.Context, lfn string) (now standing, err error) {
	now, known := e.get(lfn)
	if e.catalog == nil {
		return now, nil
	}
	wanted, err := e.wanted(lfn)
	if err != nil {
		return now, err
	}
	if known && e.at.Absolute(now.At) != wanted {
		if _, err := e.remove(ctx, lfn); err != nil {
			return now, err
		}
		now = standing{}
	}
	now.At = e.at.Recorded(wanted)
	return now, nil
}

// local is the path of a stored file, or of a copy that release removes.
func (e *destination) local(ctx context.Context, pfn string) (name string, release func(), err error) {
	if storage.IsLocal(pfn) {
		name, err = e.at.Roots().Path(pfn)
		return name, func() {}, err
	}
	name = e.scratch()
	_, err = e.files.Get(ctx, pfn, name)
	return name, func() { _ = os.Remove(name) }, err
}

func (e *destination) scratch() string { return filepath.Join(e.at.State, disk.PartPrefix+rand.Text()) }

// rename publishes on an element where a file can take the name of another.
func (e *destination) rename(
	ctx context.Context, shelf storage.Renamer, b *taskqueue.StoredFile, now standing, local string,
) error {
	name := e.name(b.File.LFN)
	there, err := shelf.Mark(ctx, name)
	ours := now.PFN != "" && !now.Found && there == now.Mark || now.Next != nil && there == now.Next.Mark
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !ours || now.Next != nil: // marks may be the same within a second, so the contents tell
		if same, err := e.same(ctx, local, name); err != nil {
			return err
		} else if same && now.own() {
			now.Next = &intent{PFN: b.PFN, Version: b.File.Version}
			return e.stand(ctx, now.done(there))
		} else if same {
			return e.stand(ctx, now.found(b, there))
		} else if !ours {
			return e.foreign()
		}
	}
	ready := e.workFolder(e.mine) + "/" + rand.Text()
	if err := e.files.Put(ctx, local, ready); err != nil {
		return err
	}
	mark, err := shelf.Mark(ctx, ready)
	if err != nil {
		return err
	}
	now.Next = &intent{PFN: b.PFN, Version: b.File.Version, Mark: mark}
	if err := e.stand(ctx, now); err != nil {
		return err
	}
	if err := beforeReplace.Hit(); err != nil {
		return err
	}
	if err := shelf.Rename(ctx, ready, name); errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("%w: `catalog_outputs` has to be on the file system to which the catalogue leads", err)
	} else if err != nil {
		return err
	}
	if there, err = shelf.Mark(ctx, name); err != nil || there != mark {
		return errors.Join(err,
			fmt.Errorf("the server has something else under that name right after: it tells %q and not %q", there, mark))
	}
	return e.stand(ctx, now.done(mark))
}

// replace publishes on an element that writes under conditions.
func (e *destination) replace(
	ctx context.Context, shelf storage.Conditional, b *taskqueue.StoredFile, now standing, local string,
) error {
	name, file := e.name(b.File.LFN), fmt.Sprintf("%d %s", b.File.Version, b.PFN)
	over, labels, err := shelf.Look(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		over = ""
	case err != nil:
		return err
	case labels[labelState] == e.state:
		turn, err := strconv.ParseUint(labels[labelTurn], 10, 64)
		if err != nil || turn > e.mine {
			return ErrTakenOver
		}
		if labels[labelFile] == file {
			now.Next = &intent{PFN: b.PFN, Version: b.File.Version}
			return e.stand(ctx, now.done(over))
		}
	default:
		if same, err := e.same(ctx, local, name); err != nil {
			return err
		} else if !same {
			return e.foreign()
		}
		return e.stand(ctx, now.found(b, over))
	}
	now.Next = &intent{PFN: b.PFN, Version: b.File.Version}
	if err := e.stand(ctx, now); err != nil {
		return err
	}
	if err := beforeReplace.Hit(); err != nil {
		return err
	}
	mark, err := shelf.Replace(ctx, local, name, over, map[string]string{
		labelState: e.state, labelTurn: strconv.FormatUint(e.mine, 10), labelFile: file,
	})
	if err != nil {
		return err
	}
	return e.stand(ctx, now.done(mark))
}

var errForeign = errors.New("something stands there that this workflow has not published, or that was changed since: " +
	"move it away, or choose another place with")

func (e *destination) foreign() error {
	if e.catalog != nil {
		return fmt.Errorf("%w `catalog_outputs`", errForeign)
	}
	return fmt.Errorf("%w --results", errForeign)
}

func (e *destination) same(ctx context.Context, local, name string) (bool, error) {
	file, _, err := storage.OpenForPut(local)
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = storage.SameAs(ctx, e.files, file, name)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

func (e *destination) stand(ctx context.Context, now standing) error {
	record, err := state.NewRecord(elsewhereTable, 0, now.Place+"\x00"+now.LFN, &now)
	if err == nil {
		err = e.persist(ctx, record)
	}
	if err == nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.standings[now.LFN] = now
	}
	return err
}

func (e *destination) mark(ctx context.Context, lfn string) (string, error) {
	switch shelf := e.shelf.(type) {
	case storage.Renamer:
		return shelf.Mark(ctx, e.name(lfn))
	case storage.Conditional:
		mark, _, err := shelf.Look(ctx, e.name(lfn))
		return mark, err
	}
	return "", storage.ErrReadOnly
}

// stands reports whether the stored file of a PFN stands under a name. What cannot be
// looked at is tried to be published, which tells why.
func (e *destination) stands(ctx context.Context, file *taskqueue.FileView) bool {
	now, ok := e.get(file.File.LFN)
	if !ok || now.PFN != file.PFN || now.Next != nil {
		return false
	}
	mark, err := e.mark(ctx, file.File.LFN)
	return err == nil && mark == now.Mark
}

// obsolete are the names of what stands there and these files are not, in order.
// What a person wants to stay is among them if all is said.
func (e *destination) obsolete(files map[string]taskqueue.FileView, all bool) (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, lfn := range slices.Sorted(maps.Keys(e.standings)) {
		here := files[lfn].Publish && strings.HasPrefix(files[lfn].PFN, e.of)
		if (all || !e.standings[lfn].Kept) && !here {
			names = append(names, lfn)
		}
	}
	return names
}

// remove takes a result away if this state has published it and it stands as it was. left says why it
// stays.
func (e *destination) remove(ctx context.Context, lfn string) (left string, err error) {
	now, _ := e.get(lfn)
	mark, err := e.mark(ctx, lfn)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return shownPlace(e.name(lfn)) + ": it could not be removed", err
	case now.Found && now.Next == nil:
		left = shownPlace(e.name(lfn)) + ": it stood there before this workflow made the same"
	case mark != now.Mark && (now.Next == nil || now.Next.Mark == "" || mark != now.Next.Mark):
		left = shownPlace(e.name(lfn)) + ": it was changed since it was published"
	default:
		if err := e.files.Remove(ctx, e.name(lfn)); err != nil {
			return shownPlace(e.name(lfn)) + ": it could not be removed", err
		}
		e.removeEmpty(e.name(lfn))
	}
	record := taskqueue.Record{Table: elsewhereTable, Key: e.known + "\x00" + lfn}
	if err := e.persist(ctx, record); err != nil {
		return left, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.standings, lfn)
	return left, nil
}

// removeEmpty removes the folders above a name of this machine that are empty, up to the place. Servers
// could not say that they are: WebDAV removes what came into one meanwhile.
func (e *destination) removeEmpty(pfn string) {
	root, err := storage.Path(e.place)
	name, nameErr := storage.Path(pfn)
	if err != nil || nameErr != nil {
		return
	}
	for at := filepath.Dir(name); strings.HasPrefix(at, root+"/"); at = filepath.Dir(at) {
		if os.Remove(at) != nil {
			return
		}
	}
}

// endTurn ends the turn of this server in order.
func (e *destination) endTurn(ctx context.Context) error {
	if e.mine == 0 {
		return nil
	}
	if shelf, ok := e.shelf.(storage.Renamer); ok {
		if err := removeAll(ctx, e.files, shelf, e.workFolder(e.mine), 1); err != nil {
			return err
		}
		if left, err := e.files.List(ctx, e.under(e.workName())); err == nil && len(left) == 0 {
			_ = shelf.RemoveFolder(ctx, e.under(e.workName()))
		}
	}
	next := e.turns
	next.Open = nil
	return e.recordTurns(ctx, next)
}
