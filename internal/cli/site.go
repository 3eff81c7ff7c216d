package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fairway/internal/batch"
	"fairway/internal/batch/command"
	"fairway/internal/pilot"
	"fairway/internal/quantity"
	"fairway/internal/site"
	"fairway/sched"
)

func (c *console) siteCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "site",
		Short: "Describe batch systems to run on",
		Long: `Describe, list, show, test and remove sites. A site is a batch system on whose
nodes ` + "`fairway run --site NAME`" + ` runs a workflow. Sites are described in
sites.yaml beside the workflow, or else in ~/.config/fairway/sites.yaml. You may
edit both files; docs/sites.md explains the keys.`,
		Example: `  fairway site add cluster --system slurm --partition batch --max-pilots 4 --cpus 16 --time 4h
  fairway site test cluster
  fairway run workflow.yaml --site cluster`,
		Args: noArgument,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(c.siteAddCommand(), c.siteListCommand(), c.siteShowCommand(), c.siteTestCommand(), c.siteRemoveCommand(), c.siteTemplateCommand())
	return command
}

func (c *console) siteAddCommand() *cobra.Command {
	values := map[string]*[]string{}
	var here bool
	command := &cobra.Command{
		Use:   "add NAME",
		Short: "Describe a site",
		Long: `Add a site to ~/.config/fairway/sites.yaml, or with --here to sites.yaml in the
folder of the workflow. Everything else in the file stays as it is.`,
		Example: `  fairway site add cluster --system slurm --partition batch --max-pilots 4 --cpus 16 --time 4h
  fairway site add lab --system ssh --hosts node1 --hosts me@node2
  fairway site add farm --system gridengine --queue all.q --parallel-environment smp --cpus 8
  fairway site add cluster --here --system slurm --options=--constraint=avx2 --tools bowtie2 --tools samtools`,
		Args: takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			var settings []site.Setting
			for _, key := range site.Keys {
				flag := flagOf(key.Name)
				if !command.Flags().Changed(flag) {
					continue
				}
				if given := *values[key.Name]; len(given) > 1 && !key.List {
					return fail(exitUsage, "give it once", "--%s has one value, not %d", flag, len(given))
				}
				settings = append(settings, site.Setting{Key: key.Name, Values: *values[key.Name]})
			}
			return c.addSite(arguments[0], settings, here)
		},
	}
	for _, key := range site.Keys {
		help := key.Help
		if key.List {
			help += " (may be repeated)"
		}
		values[key.Name] = command.Flags().StringArray(flagOf(key.Name), nil, help)
	}
	command.Flags().BoolVar(&here, "here", false, "describe the site beside the workflow, for this workflow only")
	return command
}

func flagOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

func (c *console) addSite(name string, settings []site.Setting, here bool) error {
	file, err := site.UserFile()
	if err != nil {
		return err
	}
	if here {
		folder, err := c.workflowFolder()
		if err != nil {
			return err
		}
		file = filepath.Join(folder, site.FileName)
	}
	s, err := site.Add(file, name, settings)
	if exists, ok := errors.AsType[*site.ExistsError](err); ok {
		return fail(exitUsage, "edit it there, or remove it first with `fairway site remove "+name+"`", "%w", exists)
	}
	if err != nil {
		return fail(exitUsage, "", "the site is not added: %w", err)
	}
	return c.printSites([]*site.Site{s}, fmt.Sprintf("added %s to %s; try it with `fairway site test %s`", name, displayPath(file), name))
}

// siteObject is a site in the output of --json.
type siteObject struct {
	Name      string `json:"name"`
	System    string `json:"system"`
	MaxPilots int    `json:"max_pilots"`
	MinPilots int    `json:"min_pilots"`
	File      string `json:"file"`
	Line      int    `json:"line"`
}

type sitesObject struct {
	Sites []siteObject `json:"sites"`
}

func objectOf(s *site.Site) siteObject {
	return siteObject{s.Name, s.System, s.MaxPilots, s.MinPilots, s.File, s.Line}
}

// printSites prints sites as JSON, or a sentence for people.
func (c *console) printSites(sites []*site.Site, sentence string) error {
	return c.answer(sitesObject{append([]siteObject{}, each(sites, objectOf)...)}, func() { fmt.Fprintln(c.out, sentence) })
}

func (c *console) siteListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sites that can be named",
		Long:    "List the sites of sites.yaml beside the workflow, and those of\n~/.config/fairway/sites.yaml that it does not describe.",
		Example: "  fairway site list\n  fairway site list --json",
		Args:    noArgument,
		RunE: func(*cobra.Command, []string) error {
			folder, err := c.workflowFolder()
			if err != nil {
				return err
			}
			sites, err := site.Load(folder)
			if err != nil {
				return err
			}
			var text strings.Builder
			if len(sites) == 0 {
				text.WriteString("there are no sites; `fairway site add` describes one\n")
			}
			for _, s := range sites {
				fmt.Fprintf(&text, "%-20s %-12s at most %-14s %s:%d\n", s.Name, s.System, quantity.Count(int64(s.MaxPilots), "pilot"), displayPath(s.File), s.Line)
			}
			return c.printSites(sites, strings.TrimSuffix(text.String(), "\n"))
		},
	}
}

// siteMeant is a site by its name, and the folder from which it is meant.
func (c *console) siteMeant(name string) (s *site.Site, folder string, err error) {
	if folder, err = c.workflowFolder(); err == nil {
		s, err = findSite(folder, name)
	}
	return s, folder, err
}

func (c *console) siteShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print what is submitted to a site",
		Long:    "Print where a site is described, and the script that is submitted for a pilot.",
		Example: "  fairway site show cluster",
		Args:    takes(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			s, folder, err := c.siteMeant(arguments[0])
			if err != nil {
				return err
			}
			return c.showSite(s, folder)
		},
	}
}

func (c *console) showSite(s *site.Site, folder string) error {
	pilots := filepath.Join(folder, stateFolder, "pilots", "ID")
	text, err := s.Example(site.Place{
		State: "ID", Folder: pilots, Program: filepath.Join(pilots, "bin", "fairway-HASH"),
		Arguments: func(launch string) ([]string, error) {
			return []string{"pilot", "--connect", filepath.Join(pilots, launch+".connect")}, nil
		},
		Log: func(launch string) string { return filepath.Join(pilots, launch+".log") },
	})
	if err != nil {
		return err
	}
	return c.answer(struct {
		siteObject
		Script string `json:"script"`
	}{objectOf(s), text}, func() {
		fmt.Fprintf(c.out, "%s is described in %s:%d. A pilot is submitted as:\n\n%s", s.Name, displayPath(s.File), s.Line, text)
	})
}

func (c *console) siteRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove the description of a site",
		Long:    "Remove a site from the file that describes it. Nothing else in the file changes.",
		Example: "  fairway site remove cluster",
		Args:    takes(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			s, _, err := c.siteMeant(arguments[0])
			if err != nil {
				return err
			}
			if err := site.Remove(s); err != nil {
				return err
			}
			return c.printSites([]*site.Site{s}, fmt.Sprintf("removed %s from %s", s.Name, displayPath(s.File)))
		},
	}
}

func (c *console) siteTemplateCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "template SYSTEM",
		Short:     "Print how a batch system is called",
		Long:      "Print the template of a batch system. To run on another system, copy it under\n`command:` of a site and change it. There are templates of " + strings.Join(command.Names(), ", ") + ".",
		Example:   "  fairway site template pbs",
		Args:      takes(1, 1, "SYSTEM"),
		ValidArgs: command.Names(),
		RunE: func(_ *cobra.Command, arguments []string) error {
			if !slices.Contains(command.Names(), arguments[0]) {
				return fail(exitNotFound, "known here: "+strings.Join(command.Names(), ", "), "there is no template %q", arguments[0])
			}
			fmt.Fprint(c.out, command.Text(arguments[0]))
			return nil
		},
	}
}

func (c *console) siteTestCommand() *cobra.Command {
	wait := 10 * time.Minute
	command := &cobra.Command{
		Use:   "test NAME",
		Short: "Submit one pilot to a site, and say what it finds",
		Long: `Submit one pilot to a site, print its script, and report how long it waited and
what its node has: processors, memory, disk, remaining time, tools. The pilot
runs no jobs. Run the test in a folder that the nodes see. Ctrl-C cancels it.`,
		Example: "  fairway site test cluster\n  fairway site test cluster --wait 1h --json",
		Args:    takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			s, folder, err := c.siteMeant(arguments[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(command.Context(), wait)
			defer cancel()
			defer signalled(func(os.Signal) { cancel() })()
			return c.testSite(ctx, s, folder)
		},
	}
	command.Flags().DurationVar(&wait, "wait", wait, "how long to wait for the pilot")
	return command
}

// testSite submits a probe from a folder of its own, which it removes.
func (c *console) testSite(ctx context.Context, s *site.Site, folder string) error {
	dir, err := os.MkdirTemp(folder, ".fairway-site-test-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	launch := s.Name + "-test"
	settings := filepath.Join(dir, "settings")
	config := pilot.Config{
		Life: s.Request.Time, Check: s.Check, Tools: s.Tools, Storage: "file:" + dir,
	}
	config.InScratch(filepath.Join(s.Scratch, pilot.ScratchPrefix+strings.TrimPrefix(filepath.Base(dir), ".fairway-site-")))
	encoded, err := config.Encode()
	if err != nil {
		return err
	}
	if err := os.WriteFile(settings, []byte(encoded), 0o600); err != nil {
		return err
	}
	program, err := copyProgram(dir)
	if err != nil {
		return err
	}
	log := filepath.Join(dir, launch+".log")
	system, err := s.Open(site.Place{
		State: filepath.Base(dir)[len(".fairway-site-test-"):], Folder: dir, Program: program,
		Arguments: func(string) ([]string, error) { return []string{"pilot", "--probe", settings}, nil },
		Log:       func(string) string { return log },
	})
	if err != nil {
		return err
	}
	if !c.json {
		_, text, err := system.Text(launch)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "submitting to %s:\n\n%s\n", s.Name, text)
	}
	found, waited, err := probe(ctx, system, s, launch, settings+foundEnding)
	if err != nil {
		said, _ := os.ReadFile(log)
		return fail(exitFailed, "see docs/sites.md", "no pilot came at %s: %w%s", s.Name, err, withLines(said))
	}
	return c.printFound(s, found, waited, problemsOf(system))
}

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

// probe submits a launch, and waits for what it writes.
func probe(ctx context.Context, system batch.System, s *site.Site, launch, answer string) (found pilot.Found, waited time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := time.Now()
	if err := system.Submit(ctx, launch); err != nil {
		return found, 0, err
	}
	roster := batch.NewRoster(batch.RosterConfig{
		Site: s.Name, System: system, Every: cmp.Or(s.Poll, time.Second),
		Ended: func(end batch.End) {
			// What it wrote may be seen a moment later than its end.
			_ = sched.Default().Sleep(ctx, 2*time.Second)
			cancel(fmt.Errorf("it ended without an answer (%s)", end.Reason))
		},
	})
	defer roster.Close()
	if _, err := roster.Adopt(ctx, []string{launch}); err != nil {
		return found, 0, err
	}
	var text []byte
	_, err = sched.Default().WaitFile(ctx, sched.FileQuery{Path: answer, Until: func(sched.FileState) bool {
		text, err = os.ReadFile(answer)
		return err == nil
	}})
	if err != nil {
		if status, known := roster.Status(launch); known && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return found, 0, fmt.Errorf("it is %s (%s) after %s", status.State, status.Reason, quantity.Seconds(time.Since(begun).Seconds()))
		}
		return found, 0, context.Cause(ctx)
	}
	return found, time.Since(begun), json.Unmarshal(text, &found)
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
		for _, problem := range problems {
			fmt.Fprintf(c.out, "no pilot can be started on %s\n", problem)
		}
	}
	if found.Problem != "" {
		return fail(exitFailed, fmt.Sprintf("mend the node, or the description in %s:%d", displayPath(s.File), s.Line), "the pilot would take no jobs: %s", found.Problem)
	}
	return nil
}

// completeSites are the names that --site takes.
func (c *console) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	folder, err := c.workflowFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := site.Load(folder)
	return each(all, func(s *site.Site) string { return s.Name }), cobra.ShellCompDirectiveNoFileComp
}
