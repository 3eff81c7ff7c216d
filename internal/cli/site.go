//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/access"
	"fairway/internal/batch/command"
	"fairway/internal/bootstrap"
	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow/workflow"
	"fairway/internal/pilot/process"
	"fairway/internal/provision"
	"fairway/internal/quantity"
	"fairway/internal/server/convert"
	"fairway/internal/server/launch"
	"fairway/internal/site"
)

func (c *commands) siteCommand() *cobra.Command {
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
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(c.siteAddCommand(), c.siteListCommand(), c.siteShowCommand(), c.siteTestCommand(),
		c.siteRemoveCommand(), c.siteTemplateCommand())
	return command
}

func (c *commands) siteAddCommand() *cobra.Command {
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
		Args: console.Takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			var settings []site.Setting
			for _, key := range site.Keys {
				flag := flagOf(key.Name)
				if !command.Flags().Changed(flag) {
					continue
				}
				if given := *values[key.Name]; len(given) > 1 && !key.List {
					return console.Fail(console.ExitUsage, "give it once", "--%s has one value, not %d", flag, len(given))
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

func (c *commands) addSite(name string, settings []site.Setting, here bool) error {
	file, err := site.UserFile()
	if err != nil {
		return err
	}
	if here {
		folder, err := c.WorkflowFolder()
		if err != nil {
			return err
		}
		file = filepath.Join(folder, site.FileName)
	}
	s, err := site.Add(file, name, settings)
	if exists, ok := errors.AsType[*site.ExistsError](err); ok {
		return console.Fail(console.ExitUsage, "edit it there, or remove it first with `fairway site remove "+name+"`",
			"%w", exists)
	}
	if err != nil {
		return console.Fail(console.ExitUsage, "", "the site is not added: %w", err)
	}
	return c.printSites([]*site.Site{s}, fmt.Sprintf("added %s to %s; try it with `fairway site test %s`", name,
		screen.DisplayPath(file), name))
}

type siteObject struct {
	Name      string `json:"name"`
	System    string `json:"system"`
	MaxPilots int    `json:"max_pilots"`
	MinPilots int    `json:"min_pilots"`
	File      string `json:"file"`
	Line      int    `json:"line"`
}

type shownSite struct {
	siteObject
	Script string `json:"script"`
}

type sitesObject struct {
	Sites []siteObject `json:"sites"`
}

func objectOf(s *site.Site) siteObject {
	return siteObject{s.Name, s.System, s.MaxPilots, s.MinPilots, s.File, s.Line}
}

func (c *commands) printSites(sites []*site.Site, sentence string) error {
	return c.Answer(sitesObject{convert.Each(sites, objectOf)},
		func() { fmt.Fprintln(c.Out, sentence) })
}

func (c *commands) siteListCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the sites that can be named",
		Long:    "List the sites of sites.yaml beside the workflow, and those of\n~/.config/fairway/sites.yaml that it does not describe.",
		Example: "  fairway site list\n  fairway site list --json",
		Args:    console.NoArgument,
		RunE: func(*cobra.Command, []string) error {
			folder, err := c.WorkflowFolder()
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
				most := "at most " + quantity.Count(int64(s.MaxPilots), "pilot")
				if s.MaxPilots == 0 {
					most = "a pilot on each node"
				}
				fmt.Fprintf(&text, "%-20s %-12s %-22s %s:%d\n", s.Name, s.System, most, screen.DisplayPath(s.File), s.Line)
			}
			return c.printSites(sites, strings.TrimSuffix(text.String(), "\n"))
		},
	}
}

func (c *commands) siteMeant(name string) (s *site.Site, folder string, err error) {
	if folder, err = c.WorkflowFolder(); err == nil {
		s, err = console.FindSite(folder, name)
	}
	return s, folder, err
}

func (c *commands) siteShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print what is submitted to a site",
		Long:    "Print where a site is described, and the script that is submitted for a pilot.",
		Example: "  fairway site show cluster",
		Args:    console.Takes(1, 1, "NAME"),
		RunE: func(command *cobra.Command, arguments []string) error {
			s, folder, err := c.siteMeant(arguments[0])
			if err == nil {
				err = console.OfSites(provision.EnterSite(command.Context(), s))
			}
			if err != nil {
				return err
			}
			return c.showSite(s, folder)
		},
	}
}

func (c *commands) showSite(s *site.Site, folder string) error {
	pilots := filepath.Join(folder, console.StateFolder, "pilots", "ID")
	text, err := s.Example(site.Launcher{
		State: "ID", Folder: pilots, Environment: process.Handed,
		Start: func(name string) (bootstrap.Start, error) { return provision.StartOf(s, exampleWay(pilots, name)) },
	})
	if err != nil {
		return err
	}
	return c.Answer(shownSite{objectOf(s), text}, func() {
		where := "is the job in which Fairway runs"
		if s.File != "" {
			where = fmt.Sprintf("is described in %s:%d", screen.DisplayPath(s.File), s.Line)
		}
		fmt.Fprintf(c.Out, "%s %s. A pilot is submitted as:\n\n%s", s.Name, where, text)
	})
}

// exampleWay has names in capitals, and zeros, for what a launch has of its own.
func exampleWay(pilots, name string) launch.Way {
	zeros := strings.Repeat("0", 64)
	return launch.Way{
		File: filepath.Join(pilots, name+".connect"), Path: filepath.Join(pilots, bootstrap.Folder, "fairway-HASH"),
		Connection: access.Connection{Addresses: []string{"SERVER:1"}, Pin: "sha256:" + zeros, Launch: name, Token: "TOKEN"},
		Authority:  []byte("CERTIFICATE"), Program: bootstrap.Program{Hash: zeros},
	}
}

func (c *commands) siteRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Remove the description of a site",
		Long:    "Remove a site from the file that describes it. Nothing else in the file changes.",
		Example: "  fairway site remove cluster",
		Args:    console.Takes(1, 1, "NAME"),
		RunE: func(_ *cobra.Command, arguments []string) error {
			s, _, err := c.siteMeant(arguments[0])
			if err != nil {
				return err
			}
			if err := site.Remove(s); err != nil {
				return err
			}
			return c.printSites([]*site.Site{s}, fmt.Sprintf("removed %s from %s", s.Name, screen.DisplayPath(s.File)))
		},
	}
}

func (c *commands) siteTemplateCommand() *cobra.Command {
	long := "Print the template of a batch system. To run on another system, copy it under\n`command:` of a site and " +
		"change it. There are templates of:\n"
	for _, name := range command.Names() {
		long += fmt.Sprintf("\n  %-12s%s", name, command.About(name))
	}
	return &cobra.Command{
		Use:       "template SYSTEM",
		Short:     "Print how a batch system is called",
		Long:      long,
		Example:   "  fairway site template pbs",
		Args:      console.Takes(1, 1, "SYSTEM"),
		ValidArgs: command.Names(),
		RunE: func(_ *cobra.Command, arguments []string) error {
			if !slices.Contains(command.Names(), arguments[0]) {
				return console.Fail(console.ExitNotFound, "known here: "+strings.Join(command.Names(), ", "),
					"there is no template %q",
					arguments[0])
			}
			fmt.Fprint(c.Out, command.Text(arguments[0]))
			return nil
		},
	}
}

func (c *commands) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	folder, err := c.WorkflowFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := site.Load(folder)
	return convert.Each(all, func(s *site.Site) string { return s.Name }), cobra.ShellCompDirectiveNoFileComp
}

// checkSites returns what is wrong in a file of sites.
func checkSites(file string, data []byte) error {
	_, err := site.Parse(file, data)
	return err
}

// checkNeeds refuses a workflow with a step that the sites could never run.
func checkNeeds(work *workflow.Workflow, folder string, sites []string) error {
	o := &provision.Options{Sites: sites, Shown: screen.DisplayPath}
	return console.OfSites(provision.CheckNeeds(context.Background(), o, work, folder))
}
