//go:build linux

package access

import (
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/proto"

	"fairway/internal/legible"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// Limits of what a pilot may say in one message, besides MaxMessage for the whole.
const (
	// MaxName is the longest name of a file, host, tool or anything else, in bytes.
	MaxName = 4096
	// MaxPilotName is the longest name of a pilot, in bytes.
	MaxPilotName = 255
	// MaxHello is all that a pilot says of itself, in bytes. It is kept as long as the pilot is
	// known. A text for people in it is cut.
	MaxHello = 64 << 10
	// MaxLaunchPilots is how many pilots one launch may have while a server runs, one after the
	// other or together: a batch system may start a job again.
	MaxLaunchPilots = 16
	// MaxAttempts is of attempts, and of results.
	MaxAttempts = 100_000
	// MaxOutputs is of files that one attempt has written.
	MaxOutputs = 1_000_000
	// MaxCached is of files that came into a cache, or left it. A pilot tells all of a larger
	// cache in several messages.
	MaxCached = 10_000
	// MaxUnserved is of pilots from which it got nothing.
	MaxUnserved = 1000
	// MaxTools is of tools, and of countable things that a pilot has.
	MaxTools = 1000
	// MaxLife bounds each duration: what a pilot has left, or asks for.
	MaxLife = 10 * 365 * 24 * time.Hour
	// MaxAmount bounds each amount, and maxRecords the records of a file: a sum of many fits a
	// number. A pilot that has more says that it has so much.
	MaxAmount  = 1 << 50
	maxRecords = 1 << 40
)

// Claims are the rules for what a pilot says. Check tells lies from the rest
// without the state of the TaskQueue; what depends on that, such as which files
// a job writes, the TaskQueue checks itself.
type Claims struct {
	Authority *Authority
	// Stores returns how the PFNs begin under which attempts of a site may store
	// outputs.
	Stores func(site string) []string
}

// Check returns an error if the pilot says what it cannot know, what is not its
// own, or more than a limit permits. caller is nil for a pilot that calls over
// the socket: it works for the user of the state, on this machine.
func (c *Claims) Check(caller *Caller, m *wire.SyncRequest) error {
	if err := checkPilot(caller, m); err != nil {
		return err
	}
	if err := checkLists(m); err != nil {
		return err
	}
	if err := checkCounts(m.GetCounts()); err != nil {
		return err
	}
	if err := checkMembers(m.GetMembers()); err != nil {
		return err
	}
	if err := checkWaiting(m); err != nil {
		return err
	}
	if max(len(m.GetSaved()), len(m.GetMovesFiles())) > MaxAttempts {
		return malformed("a Sync tells of at most %d states that were saved, and attempts that move files", MaxAttempts)
	}
	for _, list := range [][]*wire.AttemptRef{m.GetQueued(), m.GetStarted()} {
		for _, a := range list {
			if err := c.checkTicket(a.GetRun(), a.GetJob(), a.GetAttempt(), a.GetTicket()); err != nil {
				return err
			}
			if d := a.GetRunning().AsDuration(); d < 0 || d > MaxLife {
				return malformed("attempt %d cannot have run for %v", a.GetAttempt(), d)
			}
		}
	}
	if len(m.GetEnded()) == 0 && len(m.GetSaved()) == 0 {
		return nil
	}
	site := m.GetHello().GetSite()
	if caller != nil {
		site = caller.Site
	}
	stores := c.Stores(site)
	for _, r := range m.GetEnded() {
		if err := c.checkReport(r, stores); err != nil {
			return err
		}
	}
	return c.checkSaved(m.GetSaved(), stores)
}

// Limits of what one Sync tells of what is waited for at a pilot.
const (
	MaxWaiting = 1000 // inputs
	MaxAway    = 16   // servers
	maxReason  = 1000 // bytes of a server's name, or of why it is away
	maxWaited  = 365 * 24 * time.Hour
)

func checkWaiting(m *wire.SyncRequest) error {
	if len(m.GetWaiting()) > MaxWaiting || len(m.GetAway()) > MaxAway {
		return malformed("a Sync tells of at most %d inputs that are waited for, and %d servers", MaxWaiting, MaxAway)
	}
	for _, w := range m.GetWaiting() {
		most := maxWaited.Milliseconds()
		if w.GetBytes() < 0 || w.GetBytes() > MaxAmount || w.GetMilliseconds() < 0 || w.GetMilliseconds() > most {
			return malformed("of %.100q %d bytes have come in %d ms", w.GetLfn(), w.GetBytes(), w.GetMilliseconds())
		}
		if len(w.GetSource()) > maxReason || strings.ContainsFunc(w.GetSource(), unicode.IsControl) {
			return malformed("%.100q is no pilot or server that a file is read from", w.GetSource())
		}
		if err := checkName(w.GetLfn()); err != nil {
			return err
		}
	}
	for _, s := range m.GetAway() {
		if s.GetServer() == "" || len(s.GetServer()) > maxReason || len(s.GetReason()) > maxReason {
			return malformed("a server that is away has a name and a reason of up to %d bytes", maxReason)
		}
	}
	return nil
}

// checkSaved makes sure that what attempts have saved was given to them, and is stored where they may.
func (c *Claims) checkSaved(saved []*wire.SavedState, stores []string) error {
	for _, s := range saved {
		of := s.GetOf()
		if err := c.checkTicket(of.GetRun(), of.GetJob(), of.GetAttempt(), of.GetTicket()); err != nil {
			return err
		}
		wrong := checkOutput(s.GetFile(), of.GetAttempt(), stores)
		if wrong == nil && s.GetFile().GetPfn() == "" {
			wrong = errors.New("is stored nowhere")
		}
		if wrong != nil {
			return malformed("what attempt %d has saved %v", of.GetAttempt(), wrong)
		}
	}
	return nil
}

func checkOutput(o *wire.WrittenFile, attempt uint64, stores []string) error {
	if o.GetSize() < 0 || o.GetSize() > MaxAmount || o.GetRecords() < 0 || o.GetRecords() > maxRecords {
		return fmt.Errorf("says that %.100q has %d bytes and %d records", o.GetLfn(), o.GetSize(), o.GetRecords())
	}
	if err := checkHash(o.GetBlake3()); err != nil {
		return fmt.Errorf("tells no hash of %.100q: %w", o.GetLfn(), err)
	}
	if err := checkName(o.GetLfn()); err != nil {
		return fmt.Errorf("names an output that cannot be one: %w", err)
	}
	if o.GetPfn() != "" && !assigned(o, attempt, stores) {
		return fmt.Errorf("says that %.100q is stored as %.200q, which was not assigned to it", o.GetLfn(), o.GetPfn())
	}
	return nil
}

// Is reports whether a caller may be the pilot that a Sync names. nil is the user of the state.
func (c *Caller) Is(pilot string) bool {
	if pilot == "" || len(pilot) > MaxPilotName || !legible.IsLine(pilot) {
		return false
	}
	if c == nil {
		return true
	}
	ending, ok := strings.CutPrefix(pilot, c.Launch+"-")
	return ok && ending != "" && !strings.Contains(ending, "-")
}

// checkPilot makes sure that a pilot is of the launch whose token it has.
func checkPilot(caller *Caller, m *wire.SyncRequest) error {
	id, hello := m.GetPilot(), m.GetHello()
	if id == "" || len(id) > MaxPilotName || !legible.IsLine(id) {
		return malformed("a Sync names the pilot that makes it, in at most %d bytes without control characters", MaxPilotName)
	}
	if caller != nil {
		if !caller.Is(id) {
			return forbid("the token is good for pilots of the launch %.100q, and %.100q is none: leave pilot out of the "+
				"settings", caller.Launch, id)
		}
		if hello != nil && (hello.GetLaunch() != caller.Launch || hello.GetSite() != caller.Site) {
			return forbid("the token is that of the launch %.100q at the site %.100q, and the pilot says that it is %.100q at "+
				"%.100q: use the connection file of its own launch",
				caller.Launch, caller.Site, hello.GetLaunch(), hello.GetSite())
		}
		if !caller.pilots.admits(id) {
			return forbid("the launch %.100q has had %d pilots (MaxLaunchPilots): have its job start one, and end with it",
				caller.Launch, MaxLaunchPilots)
		}
	}
	return checkHello(hello)
}

func checkHello(h *wire.PilotInfo) error {
	if h == nil {
		return nil
	}
	if size := proto.Size(h) - len(h.GetError()); size > MaxHello {
		return malformed("a pilot says of itself %d bytes, more than %d (MaxHello)", size, MaxHello)
	}
	for what, text := range map[string]string{
		"host":        h.GetHost(),
		"machine":     h.GetMachine(),
		"site":        h.GetSite(),
		"launch":      h.GetLaunch(),
		"certificate": h.GetSharePin(),
	} {
		if len(text) > MaxName || !legible.IsLine(text) {
			return malformed("the name of its %s is no name of at most %d bytes without control characters", what, MaxName)
		}
	}
	// A path is shown nowhere, and may have any characters.
	if len(h.GetCacheDir()) > MaxName || strings.Contains(h.GetCacheDir(), "\x00") {
		return malformed("the path of its cache is none of at most %d bytes", MaxName)
	}
	if a := h.GetShareAddress(); a != "" {
		host, port, err := net.SplitHostPort(a)
		_, noPort := strconv.ParseUint(port, 10, 16)
		// Others connect to what it says: not to what only they reach, each another one.
		if ip := net.ParseIP(host); err != nil || noPort != nil || !ip.IsGlobalUnicast() && !ip.IsLoopback() {
			return malformed("a pilot serves its cache at an IP address of a machine with a port, and %.100q is none", a)
		}
	}
	has := h.GetHas()
	if len(h.GetTools()) > MaxTools || len(has.GetCountable()) > MaxTools {
		return malformed("a pilot names at most %d tools and countable things", MaxTools)
	}
	for _, tool := range h.GetTools() {
		if len(tool) > MaxName || !legible.IsLine(tool) {
			return malformed("%.100q is no name of a tool: it has more than %d bytes, or control characters", tool, MaxName)
		}
	}
	amounts := []int64{has.GetMilliCpus(), has.GetMemoryBytes(), has.GetDiskBytes(), h.GetCacheSize()}
	for name, n := range has.GetCountable() {
		if len(name) > MaxName || !legible.IsLine(name) {
			return malformed("%.100q is no name of a countable thing: it has more than %d bytes, or control characters",
				name, MaxName)
		}
		amounts = append(amounts, n)
	}
	if has.GetGpuShare() != 0 {
		return malformed("a pilot has whole GPUs, not %d thousandths of one", has.GetGpuShare())
	}
	for _, n := range amounts {
		if n < 0 || n > MaxAmount {
			return malformed("a pilot cannot have %d of anything", n)
		}
	}
	for _, d := range []time.Duration{
		has.GetTime().AsDuration(), h.GetRemaining().AsDuration(), h.GetLease().AsDuration(),
	} {
		if d < 0 || d > MaxLife {
			return malformed("%v is no time that a pilot has left or waits", d)
		}
	}
	return nil
}

func checkLists(m *wire.SyncRequest) error {
	switch {
	case len(m.GetQueued()) > MaxAttempts, len(m.GetStarted()) > MaxAttempts, len(m.GetEnded()) > MaxAttempts:
		return malformed("a Sync tells of at most %d attempts", MaxAttempts)
	case len(m.GetUnserved()) > MaxUnserved:
		return malformed("a Sync tells of at most %d sources that were of no use", MaxUnserved)
	case len(m.GetCacheAdded()) > MaxCached, len(m.GetCacheGone()) > MaxCached:
		return malformed("a Sync tells of at most %d files in a cache", MaxCached)
	case m.GetOutputsStored() < 0, m.GetOutputsToStore() < m.GetOutputsStored(), m.GetOutputsToStore() > MaxAmount:
		return malformed("%d outputs of %d cannot be stored", m.GetOutputsStored(), m.GetOutputsToStore())
	}
	var all total
	for _, f := range m.GetCacheAdded() {
		if !all.takes(f.GetSize()) {
			return malformed("the cached file %.100q cannot have %d bytes", f.GetFile().GetLfn(), f.GetSize())
		}
		if err := checkHash(f.GetBlake3()); err != nil {
			return err
		}
		if err := checkName(f.GetFile().GetLfn()); err != nil {
			return err
		}
	}
	for _, f := range m.GetCacheGone() {
		if err := checkName(f.GetFile().GetLfn()); err != nil {
			return err
		}
	}
	return nil
}

// total is the size of several files, which is at most MaxAmount: thousands of them, each as large as one may
// be, would be more than a number holds.
type total int64

func (t *total) takes(size int64) bool {
	if size < 0 || size > MaxAmount-int64(*t) {
		return false
	}
	*t += total(size)
	return true
}

// checkMembers takes where members of gangs say that they are reached: others connect to that.
func checkMembers(members []*wire.MemberState) error {
	if len(members) > MaxAttempts {
		return malformed("a Sync tells of at most %d members of gangs", MaxAttempts)
	}
	for _, m := range members {
		if ip := net.ParseIP(m.GetHost()); ip == nil || !ip.IsGlobalUnicast() && !ip.IsLoopback() {
			return malformed("a member of a gang is reached at an IP address of a machine, and %.100q is none", m.GetHost())
		}
		if len(m.GetPorts()) != wire.MemberPorts || slices.ContainsFunc(m.GetPorts(), func(port uint32) bool {
			return port == 0 || port > math.MaxUint16
		}) {
			return malformed("a member of a gang has %d ports, and %v are none", wire.MemberPorts, m.GetPorts())
		}
	}
	return nil
}

func (c *Claims) checkTicket(run, job uint32, attempt uint64, ticket []byte) error {
	if c.Authority.Gave(run, job, attempt, ticket) {
		return nil
	}
	return forbid("attempt %d of job %d of run %d was not given to this pilot, or not by this state: what it reports "+
		"does not count", attempt, job, run)
}

func (c *Claims) checkReport(report *wire.Report, stores []string) error {
	r := report.GetResult()
	if err := c.checkTicket(r.GetRun(), r.GetJob(), r.GetAttempt(), report.GetTicket()); err != nil {
		return err
	}
	of := func(format string, args ...any) error {
		return malformed("the result of attempt %d %s", r.GetAttempt(), fmt.Sprintf(format, args...))
	}
	if _, ok := wire.Outcome_name[int32(r.GetOutcome())]; !ok {
		return of("has the outcome %d, which there is not", r.GetOutcome())
	}
	if len(r.GetOutputs()) > MaxOutputs || len(r.GetLost()) > MaxOutputs {
		return of("names more than %d files", MaxOutputs)
	}
	var all total
	for _, o := range r.GetOutputs() {
		if err := checkOutput(o, r.GetAttempt(), stores); err != nil {
			return of("%v", err)
		}
		if !all.takes(o.GetSize()) {
			return of("says that its files have more than %d bytes together", int64(MaxAmount))
		}
	}
	for _, l := range r.GetLost() {
		if len(l.GetPfn()) > MaxName || strings.ContainsAny(l.GetPfn(), "\x00\r\n") {
			return of("names a lost file in more than %d bytes, or in several lines", MaxName)
		}
		if err := checkName(l.GetFile().GetLfn()); err != nil {
			return of("names a lost file that cannot be one: %v", err)
		}
	}
	return checkUsage(r.GetUsage(), of)
}

func checkUsage(u *wire.Usage, of func(format string, args ...any) error) error {
	moved := []int64{u.GetBytesStaged(), u.GetBytesCached(), u.GetBytesWritten()}
	counts := []int64{int64(u.GetCacheHits()), int64(u.GetCacheMisses()), int64(u.GetRemoteHits()),
		int64(u.GetPrefetchHits()), u.GetBytesRemote(), u.GetBytesPrefetched()}
	for _, n := range slices.Concat(moved, counts) {
		if n < 0 {
			return of("says that it used less than nothing")
		}
	}
	if err := u.Impossible(); err != nil {
		return of("says that it used %v", err)
	}
	if slices.Max(moved) > MaxAmount {
		return of("says that it read or wrote %d bytes", slices.Max(moved))
	}
	if u.GetRemoteHits() > u.GetCacheHits()-u.GetPrefetchHits() ||
		u.GetBytesRemote() > u.GetBytesCached()-u.GetBytesPrefetched() {
		return of("says that more came from other hosts and was prefetched than it read from caches")
	}
	return nil
}

// checkCounts takes counts that many pilots may have: their sum fits a number.
func checkCounts(c *wire.CacheCounts) error {
	for _, n := range []int64{c.GetEvictedFiles(), c.GetEvictedBytes(), c.GetPrefetchedFiles(), c.GetPrefetchedBytes()} {
		if n < 0 || n > MaxAmount {
			return malformed("a cache cannot have evicted or prefetched %d files or bytes", n)
		}
	}
	return nil
}

// assigned reports whether an output has the one name that an attempt may give
// it, in one of the places of its site.
func assigned(o *wire.WrittenFile, attempt uint64, stores []string) bool {
	return slices.ContainsFunc(stores, func(prefix string) bool {
		return o.GetPfn() == storage.OutputPFN(prefix, o.GetLfn(), o.GetVersion(), attempt)
	})
}

// checkHash refuses what is no BLAKE3 hash, unless it is not told.
func checkHash(hash []byte) error {
	switch n := len(hash); {
	case n != 0 && n != 32:
		return malformed("a hash of contents has 32 bytes, not %d", n)
	case n != 0 && !slices.ContainsFunc(hash, func(b byte) bool { return b != 0 }):
		return malformed("32 zero bytes are no hash of contents")
	}
	return nil
}

func checkName(lfn string) error {
	name := strings.TrimLeft(lfn, "/")
	if len(lfn) > MaxName || strings.ContainsAny(lfn, "\x00\r\n") || !filepath.IsLocal(name) {
		return malformed("%.100q is no name of a file", lfn)
	}
	return nil
}
