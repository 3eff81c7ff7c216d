package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/bootstrap"
	"fairway/internal/pilot"
	"fairway/internal/quantity"
	"fairway/internal/server/launch"
	"fairway/internal/server/listen"
	"fairway/internal/site"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/sched"
)

func (c *console) siteTestCommand() *cobra.Command {
	wait, address := 10*time.Minute, ""
	command := &cobra.Command{
		Use:   "test NAME",
		Short: "Submit one pilot to a site, and say what it finds",
		Long: `Submit one pilot to a site, print its script, and report how long it waited and
what its node has: processors, memory, disk, remaining time, tools. It also says
at which address the node reaches this machine, and whether it sees the folder of
the workflow. The pilot runs no jobs. Ctrl-C cancels it.`,
		Example: "  fairway site test cluster\n  fairway site test cluster --wait 1h --json",
		Args:    takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			s, folder, err := c.siteMeant(arguments[0])
			if err == nil {
				err = enterSite(command.Context(), s)
			}
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), wait)
			defer cancel()
			defer signalled(func(os.Signal) { cancel() })()
			return c.testSite(ctx, s, folder, address)
		},
	}
	command.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the pilot")
	command.Flags().StringVar(&address, "listen", "", listenHelp)
	return command
}

// foundPath is where the probe of a site tells what it has found.
const foundPath = "/fairway/found"

// maxFound bounds what a probe tells, in bytes.
const maxFound = 1 << 20

// trial is the server of the test of a site. It has a folder of its own, in that of the
// workflow.
type trial struct {
	dir         string
	connections *launch.Connections
	endpoint    *listen.Endpoint
	found       chan pilot.Found
	wrong       chan error // what kept the probe from starting
}

func openTrial(folder, address string) (*trial, error) {
	dir, err := os.MkdirTemp(folder, ".fairway-site-test-")
	if err != nil {
		return nil, err
	}
	t := &trial{dir: dir, found: make(chan pilot.Found, 1), wrong: make(chan error, 1)}
	if err := t.serve(folder, address); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *trial) serve(folder, address string) error {
	authority, err := access.OpenAuthority(filepath.Join(t.dir, "authority"), filepath.Base(t.dir))
	if err != nil {
		return err
	}
	listener, addresses, err := access.Listen(address, 0, authority)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	routes := map[string]http.Handler{}
	if t.connections, err = launch.OpenConnections(t.dir, authority, addresses, log); err == nil {
		routes[served.Prefix], err = marked(folder, filepath.Base(t.dir), authority.FileKey())
	}
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	routes[bootstrap.Prefix] = bootstrap.Handler(t.connections.Programs(), func(text string) { offer(t.wrong, errors.New(text)) })
	routes[foundPath] = access.Timed(http.HandlerFunc(t.take))
	t.endpoint = listen.NewEndpoint(listener, access.Handler(t.connections.Tokens, routes), log)
	go t.endpoint.Serve()
	return nil
}

// marked lets a pilot find out whether it shares a folder with this machine, by a mark
// in a folder within.
func marked(folder, within string, key *served.Key) (http.Handler, error) {
	places := storage.Places{Folder: folder}
	mark, err := served.NewMark(places, storage.FolderScheme+":", within)
	if err != nil {
		return nil, err
	}
	return served.NewHandler(served.Config{
		Element: storage.Local(places), Authority: key, Marks: []served.Mark{mark},
		Launch: func(ctx context.Context) (string, bool) {
			caller, ok := access.CallerOf(ctx)
			return caller.Launch, ok
		},
	}), nil
}

// take is told what the probe has found.
func (t *trial) take(w http.ResponseWriter, r *http.Request) {
	var found pilot.Found
	if err := json.NewDecoder(io.LimitReader(r.Body, maxFound)).Decode(&found); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	offer(t.found, found)
	w.WriteHeader(http.StatusNoContent)
}

// offer sends a value unless there is one already.
func offer[T any](to chan T, value T) {
	select {
	case to <- value:
	default:
	}
}

func (t *trial) close() {
	if t.endpoint != nil {
		t.endpoint.Close(time.Second)
	}
	_ = os.RemoveAll(t.dir)
}

// testSite submits a probe, which reaches this process as a pilot reaches its server.
func (c *console) testSite(ctx context.Context, s *site.Site, folder, address string) error {
	t, err := openTrial(folder, address)
	if err != nil {
		return err
	}
	defer t.close()
	name := s.Name + "-test"
	settings := &pilot.Config{Life: s.Request.Time, Check: s.Check, Tools: s.Tools, Sandbox: sandboxMode(false, s.Strict), Workflow: folder, Lease: probeTime}
	settings.InScratch(filepath.Join(s.Scratch, pilot.ScratchPrefix+strings.TrimPrefix(filepath.Base(t.dir), ".fairway-site-")))
	system, err := s.Open(site.Place{
		State: filepath.Base(t.dir)[len(".fairway-site-test-"):], Folder: t.dir,
		Start: func(name string) (bootstrap.Start, error) {
			at, err := t.connections.To(name, s.Name, settings)
			if err != nil {
				return bootstrap.Start{}, err
			}
			return startOf(s, at, "--probe")
		},
	})
	if err != nil {
		return err
	}
	if !c.json {
		_, text, err := system.Text(name)
		if err != nil {
			return err
		}
		at, err := t.connections.To(name, s.Name, settings)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "submitting to %s:\n\n%s\n", s.Name, strings.ReplaceAll(text, string(at.Connection.Token), "TOKEN"))
	}
	found, waited, err := t.probe(ctx, system, s, name, func(text string) { fmt.Fprintln(c.err, uncoloured(text)) })
	if err != nil {
		advice := "see docs/sites.md"
		if s.File != "" {
			advice = fmt.Sprintf("mend the description in %s:%d; see docs/sites.md", displayPath(s.File), s.Line)
		}
		said, _ := os.ReadFile(filepath.Join(t.dir, name+".log"))
		if s.Shares == site.SharesNothing {
			advice = fmt.Sprintf("what it said is on the node, in %s", filepath.Join(s.Scratch, "fairway."+name+".*", "log"))
		}
		return fail(exitFailed, advice, "no pilot came at %s: %w%s", s.Name, err, withLines(said))
	}
	return c.printFound(s, found, waited, problemsOf(system))
}

// probeTime is how long a probe tries to reach the server.
const probeTime = 30 * time.Second

// slowStart is how long a probe may take to start until the person is told why it does not.
const slowStart = 5 * time.Second

// problemsOf are what keeps a batch system from starting more pilots, as far as it tells.
func problemsOf(system batch.System) []string {
	if hosts, ok := system.(interface{ Problems() []string }); ok {
		return hosts.Problems()
	}
	return nil
}

func withLines(said []byte) string {
	if text := strings.TrimSpace(string(said)); text != "" {
		return "; it said:\n" + text
	}
	return ""
}

// probe submits a launch, and waits for what it finds. Meanwhile it says why that is not there.
func (t *trial) probe(ctx context.Context, system batch.System, s *site.Site, name string, say func(string)) (found pilot.Found, waited time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	if err := system.Submit(ctx, name); err != nil {
		return found, 0, err
	}
	roster := batch.NewRoster(batch.RosterConfig{
		Site: s.Name, System: system, Every: cmp.Or(s.Poll, time.Second),
		Ended: func(end batch.End) { cancel(fmt.Errorf("it ended without an answer (%s)", end.Reason)) },
	})
	defer roster.Close()
	if _, err := roster.Adopt(ctx, []string{name}); err != nil {
		return found, 0, err
	}
	go func() {
		if wrong, err := sched.Receive(ctx, sched.Default(), t.wrong); err == nil {
			cancel(wrong)
		}
	}()
	tick := time.NewTicker(clockTick)
	defer tick.Stop()
	for told := reason(""); ctx.Err() == nil; {
		select {
		case found = <-t.found:
			return found, time.Since(begun), nil
		case <-ctx.Done():
		case <-tick.C:
			why := strings.Join(roster.Waiting(nil), "; ")
			if time.Since(begun) > slowStart && told.isNews(why) {
				say(why)
			}
		}
	}
	if status, ok := roster.Status(name); ok && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return found, 0, fmt.Errorf("it is %s (%s) after %s", status.State, status.Reason, quantity.Seconds(time.Since(begun).Seconds()))
	}
	return found, 0, context.Cause(ctx)
}

func (c *console) printFound(s *site.Site, found pilot.Found, waited time.Duration, problems []string) error {
	if c.json {
		c.printJSON(struct {
			Site   string      `json:"site"`
			Waited float64     `json:"waited"` // seconds
			Found  pilot.Found `json:"found"`
			// Problems are those of hosts that take no pilot.
			Problems []string `json:"problems,omitempty"`
		}{s.Name, waited.Seconds(), found, problems})
	} else {
		fmt.Fprintf(c.out, "a pilot came after %s, on %s\n", quantity.Seconds(waited.Seconds()), found.Host)
		fmt.Fprintf(c.out, "  processors  %g\n  memory      %s\n  disk        %s in %s\n", float64(found.MilliCPUs)/1000, quantity.Bytes(found.Memory), quantity.Bytes(found.Disk), found.Scratch)
		if found.Life > 0 {
			fmt.Fprintf(c.out, "  time        %s\n", quantity.Seconds(found.Life.Seconds()))
		}
		if len(found.Tools) > 0 {
			fmt.Fprintf(c.out, "  tools       %s\n", strings.Join(found.Tools, ", "))
		}
		fmt.Fprintf(c.out, "  server      reached at %s\n  folder      %s\n", found.Server, sharing(found.Folder))
		for _, problem := range problems {
			fmt.Fprintf(c.out, "no pilot can be started on %s\n", problem)
		}
	}
	if found.Problem != "" {
		return fail(exitFailed, fmt.Sprintf("mend the node, or the description in %s:%d", displayPath(s.File), s.Line), "the pilot would take no jobs: %s", found.Problem)
	}
	return nil
}

// sharing says for a person how a pilot gets at the folder of the workflow.
func sharing(way string) string {
	switch way {
	case pilot.FolderWritten:
		return "the workflow's is read and written in place"
	case pilot.FolderRead:
		return "the workflow's is read in place, and outputs go through the server"
	}
	return "the workflow's is not seen: files go through the server"
}
