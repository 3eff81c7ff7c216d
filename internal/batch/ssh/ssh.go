// Package ssh starts pilots on hosts that a person reaches by ssh, one on each.
//
// It calls the program ssh, with the person's own configuration, and asks for no
// password. A pilot goes on when the connection ends. Its record stands on the host,
// beneath /tmp/fairway-USER, so that a later server finds it, and another process that
// has got its number is not taken for it.
//
// Which host a launch was sent to is written down before it is sent. While that host
// cannot be reached, the launch counts as running, because it may be.
package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"fairway/internal/batch"
	"fairway/internal/disk"
	"fairway/lib/sched"
)

// Limits.
const (
	// HostTime bounds one call of a host.
	HostTime = 20 * time.Second
	// MaxCalls is how many hosts are called at a time.
	MaxCalls = 16
	// FirstRest and MaxRest bound the time for which a host that could not be reached
	// is left alone. It doubles with each failure in a row.
	FirstRest = 5 * time.Second
	MaxRest   = 5 * time.Minute
	// UnreachableTime is for how long a launch counts as running on a host that
	// cannot be reached. No pilot goes on for so long without its server.
	UnreachableTime = 24 * time.Hour
)

// Config describes one site.
type Config struct {
	// Hosts as ssh takes them: HOST, USER@HOST, or ssh://USER@HOST:PORT.
	Hosts []string
	// Options of ssh, as in its configuration: ProxyJump=gateway.
	Options []string
	// State is the identity of the state that the pilots work for.
	State string
	// Folder is where this machine keeps which launch was sent to which host.
	Folder string
	// Script returns the shell commands that a launch consists of. They stand on the
	// host in a file that its user alone may read.
	Script func(launch string) (string, error)
	// Sched waits for ssh. Default: sched.Default().
	Sched *sched.Scheduler
	// Log is told of hosts that cannot be reached. Default: slog.Default().
	Log *slog.Logger
}

// hostForm is what may stand in Config.Hosts. It begins like no option.
var hostForm = regexp.MustCompile(`^(ssh://)?[A-Za-z0-9_.-]*@?[A-Za-z0-9\[][A-Za-z0-9_.:\]%-]*$`)

// IsHost reports whether a text may be one of Config.Hosts.
func IsHost(text string) bool {
	return len(text) <= 255 && text[:min(1, len(text))] != "-" && hostForm.MatchString(text)
}

// optionForm is a keyword of ssh's configuration with a value.
var optionForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*[= ]\S.*$`)

// IsOption reports whether a text may be one of Config.Options.
func IsOption(text string) bool { return optionForm.MatchString(text) }

// System is a batch.System.
type System struct {
	cfg    Config
	client *client
	hosts  []*host // those of Config, in order, then others that launches were sent to

	mu sync.Mutex // guards what follows, and the hosts
	at map[string]*placement
}

type host struct {
	name    string
	listed  bool  // in Config.Hosts
	problem error // of the last call
	said    string
	rest    time.Duration
	retryAt time.Time // when it may be called after a problem
}

type placement struct {
	host    *host
	sending bool
	seen    time.Time // by this process: when it was sent or named, or found in the folder
}

// New returns a System.
func New(cfg Config) (*System, error) {
	cfg.Sched = cmp.Or(cfg.Sched, sched.Default())
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, err
	}
	s := &System{cfg: cfg, client: newClient(cfg.Options, cfg.Sched), at: map[string]*placement{}}
	for _, name := range cfg.Hosts {
		s.hostNamed(name).listed = true
	}
	for _, file := range disk.WithEnding(cfg.Folder, placementEnding) {
		name, err := os.ReadFile(file)
		if text := strings.TrimSpace(string(name)); err == nil && IsHost(text) {
			launch := strings.TrimSuffix(filepath.Base(file), placementEnding)
			s.at[launch] = &placement{host: s.hostNamed(text), seen: time.Now()}
		}
	}
	return s, nil
}

// placementEnding is that of the file that names the host of a launch.
const placementEnding = ".host"

func (s *System) hostNamed(name string) *host {
	for _, h := range s.hosts {
		if h.name == name {
			return h
		}
	}
	h := &host{name: name}
	s.hosts = append(s.hosts, h)
	return h
}

// folderOn is the folder of a host's records, beneath /tmp/fairway-USER. Two names of
// one machine have two.
func (s *System) folderOn(h *host) string {
	return "pilots/" + s.cfg.State + "/" + strings.ReplaceAll(h.name, "/", "_")
}

// Submit is part of batch.System. It tries the hosts that have no pilot, one after the
// other.
func (s *System) Submit(ctx context.Context, launch string) error {
	script, err := s.cfg.Script(launch)
	if err != nil {
		return err
	}
	free := s.free(launch)
	if len(free) == 0 {
		return errors.New("each host has a pilot, or waits to be called again" + s.problems())
	}
	for _, h := range free {
		if err := s.place(launch, h); err != nil {
			return err
		}
		words, asked, err := s.client.call(ctx, h.name, s.startText(h, launch, script))
		started := slices.Contains(words, "started "+launch)
		s.mu.Lock()
		if p := s.at[launch]; p != nil {
			p.sending, p.seen = false, time.Now()
		}
		s.mu.Unlock()
		switch {
		case started:
			s.reached(h, nil)
			return nil
		case asked && err != nil:
			s.reached(h, err)
			return fmt.Errorf("%s: it is not known whether a pilot was started: %w", h.name, err)
		}
		s.displace(launch)
		if err == nil && !slices.ContainsFunc(words, isBusy) {
			err = errors.New(strings.Join(append(words, "it started no pilot"), "; "))
		}
		s.reached(h, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.New("no host takes a pilot" + s.problems())
}

func isBusy(word string) bool { return strings.HasPrefix(word, "busy ") }

// free are the hosts that may take a launch, those that answered last first. One that
// it was sent to before is the first.
func (s *System) free(launch string) (free []*host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[*host]bool{}
	for other, p := range s.at {
		used[p.host] = used[p.host] || other != launch
	}
	var failed []*host
	for _, h := range s.hosts {
		p := s.at[launch]
		switch {
		case !h.listed || used[h]:
		case p != nil && p.host == h:
			free = slices.Insert(free, 0, h)
		case h.problem == nil:
			free = append(free, h)
		case !time.Now().Before(h.retryAt):
			failed = append(failed, h)
		}
	}
	return append(free, failed...)
}

func (s *System) place(launch string, h *host) error {
	s.mu.Lock()
	s.at[launch] = &placement{host: h, sending: true, seen: time.Now()}
	s.mu.Unlock()
	file := filepath.Join(s.cfg.Folder, launch+placementEnding)
	fresh := file + ".new"
	err := os.WriteFile(fresh, []byte(h.name+"\n"), 0o600)
	if err == nil {
		err = os.Rename(fresh, file)
	}
	return err
}

func (s *System) displace(launch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, launch)
	_ = os.Remove(filepath.Join(s.cfg.Folder, launch+placementEnding)) // to know it for longer does no harm
}

func (s *System) reached(h *host, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.problem = err
	if err == nil {
		h.rest, h.said = 0, ""
		return
	}
	h.rest = min(max(2*h.rest, FirstRest), MaxRest)
	h.retryAt = time.Now().Add(h.rest)
	if text := err.Error(); text != h.said {
		h.said = text
		s.cfg.Log.Warn("a host takes no pilot", "host", h.name, "error", text)
	}
}

// Problems are why hosts of the site take no pilot, one for each that the last call of
// it has shown.
func (s *System) Problems() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if h.listed && h.problem != nil {
			all = append(all, h.name+": "+h.problem.Error())
		}
	}
	return all
}

func (s *System) problems() string {
	if all := s.Problems(); len(all) > 0 {
		return ": " + strings.Join(all, "; ")
	}
	return ""
}

// Status is part of batch.System. It calls each host once, all at a time, and answers
// if one of them does.
func (s *System) Status(ctx context.Context) (map[string]batch.Status, error) {
	asked := time.Now()
	answers := map[*host][]string{}
	err := s.callAll(ctx, s.due(asked), func(h *host) string { return s.text(h, "list") }, func(h *host, words []string) {
		answers[h] = words
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]batch.Status{}
	for h, words := range answers {
		s.take(h, words, asked, found)
	}
	for launch, p := range maps.Clone(s.at) {
		_, answered := answers[p.host]
		if _, ok := found[launch]; ok || answered {
			continue
		}
		if time.Since(p.seen) > UnreachableTime {
			go s.displace(launch)
			continue
		}
		found[launch] = batch.Status{State: batch.Running, Jobs: 1, Reason: p.host.name + " cannot be reached"}
	}
	if len(answers) == 0 && err != nil && !slices.ContainsFunc(s.hosts, func(h *host) bool { return h.problem == nil }) {
		return nil, err
	}
	return found, nil
}

func (s *System) due(now time.Time) (due []*host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := map[*host]bool{}
	for _, p := range s.at {
		used[p.host] = true
	}
	for _, h := range s.hosts {
		if (h.listed || used[h]) && (h.problem == nil || !now.Before(h.retryAt)) {
			due = append(due, h)
		}
	}
	return due
}

// take reads the answer of a host. s.mu is held.
func (s *System) take(h *host, words []string, asked time.Time, found map[string]batch.Status) {
	for _, line := range words {
		word, rest, _ := strings.Cut(line, " ")
		launch, reason, _ := strings.Cut(rest, " ")
		state, ok := map[string]batch.State{"running": batch.Running, "ending": batch.Ending, "gone": batch.Gone}[word]
		if !ok || launch == "" {
			continue
		}
		status := batch.Status{State: state, Reason: cmp.Or(reason, "on "+h.name)}
		if state != batch.Gone {
			status.Jobs = 1
		}
		if before, ok := found[launch]; ok {
			status.Jobs += before.Jobs
			if before.State != batch.Gone {
				status.State, status.Reason = before.State, before.Reason
			}
		}
		found[launch] = status
		if p := s.at[launch]; state != batch.Gone && p == nil {
			s.at[launch] = &placement{host: h, seen: time.Now()} // another process sent it
		} else if state != batch.Gone {
			p.seen = time.Now()
		}
	}
	for launch, p := range maps.Clone(s.at) {
		status, ok := found[launch]
		if p.host == h && !p.sending && p.seen.Before(asked) && (!ok || status.State == batch.Gone) {
			go s.displace(launch)
		}
	}
}

// callAll calls hosts, some at a time, and passes on what they say, one after the other.
// The error joins those of all that did not answer.
func (s *System) callAll(
	ctx context.Context, hosts []*host, text func(*host) string, take func(*host, []string),
) error {
	var group sync.WaitGroup
	var mu sync.Mutex // guards problems, and take
	problems := make([]error, len(hosts))
	calls := make(chan struct{}, MaxCalls)
	for i, h := range hosts {
		calls <- struct{}{}
		group.Go(func() {
			defer func() { <-calls }()
			words, _, err := s.client.call(ctx, h.name, text(h))
			if err == nil || ctx.Err() == nil {
				s.reached(h, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems[i] = fmt.Errorf("%s: %w", h.name, err)
				return
			}
			take(h, words)
		})
	}
	group.Wait()
	return errors.Join(problems...)
}

// Withdraw is part of batch.System.
func (s *System) Withdraw(ctx context.Context, launches ...string) error {
	s.mu.Lock()
	wanted := map[*host][]string{}
	var hosts []*host
	for _, launch := range launches {
		p := s.at[launch]
		if p == nil {
			continue
		}
		if wanted[p.host] == nil {
			hosts = append(hosts, p.host)
		}
		wanted[p.host] = append(wanted[p.host], launch)
	}
	s.mu.Unlock()
	return s.callAll(ctx, hosts, func(h *host) string { return s.text(h, append([]string{"end"}, wanted[h]...)...) },
		func(*host, []string) {})
}

// Text is what is submitted for a launch, for a person to read.
func (s *System) Text(launch string) (script, input string, err error) {
	script, err = s.cfg.Script(launch)
	return script, fmt.Sprintf("# by ssh, to one of: %s\n%s", strings.Join(s.cfg.Hosts, ", "), script), err
}

// Example is what would be submitted for a launch named LAUNCH.
func Example(cfg Config) (string, error) {
	_, input, err := (&System{cfg: cfg}).Text("LAUNCH")
	return input, err
}
