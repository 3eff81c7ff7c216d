package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite docs/commands.md")

const referenceFile = "../../docs/commands.md"

func TestReferenceIsUpToDate(t *testing.T) {
	want := reference(new(console).root())
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of date: go test ./internal/cli -update", referenceFile)
	}
}

// Every command that a person sees says what it does and shows how.
func TestCommandsHaveExamples(t *testing.T) {
	for _, command := range documented(new(console).root()) {
		if command.Short == "" || command.Example == "" {
			t.Errorf("%s: no description or no example", command.CommandPath())
		}
		for line := range strings.Lines(command.Example) {
			if !strings.HasPrefix(line, "  fairway ") {
				t.Errorf("%s: example %q is no command", command.CommandPath(), line)
			}
		}
	}
}

// documented are the commands that a person sees, in the order of their groups.
func documented(root *cobra.Command) []*cobra.Command {
	var commands []*cobra.Command
	for _, group := range append(root.Groups(), &cobra.Group{}) {
		for _, command := range root.Commands() {
			if command.GroupID == group.ID && command.IsAvailableCommand() {
				commands = append(commands, command)
			}
		}
	}
	return commands
}

func reference(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("# Commands\n\n")
	text.WriteString("Made from what `fairway COMMAND --help` prints (`go test ./internal/cli -update`).\n\n")
	commands := documented(root)
	for _, group := range root.Groups() {
		var names []string
		for _, command := range commands {
			if command.GroupID == group.ID {
				names = append(names, fmt.Sprintf("[%s](#%s)", command.Name(), command.Name()))
			}
		}
		fmt.Fprintf(&text, "- %s %s\n", group.Title, strings.Join(names, ", "))
	}
	text.WriteString("\nFlags of all commands:\n\n```\n" + root.PersistentFlags().FlagUsagesWrapped(100) + "```\n")
	shared := sharedFlags(commands)
	writeShared(&text, commands, shared)
	for _, command := range commands {
		writeCommand(&text, command, shared)
	}
	text.WriteString(jsonChapter)
	text.WriteString("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&text, "| %d | %s |\n", e.code, e.meaning)
	}
	text.WriteString(completionChapter)
	return text.String()
}

// sharedBy is how many commands have a flag that stands once for all of them.
const sharedBy = 4

// sharedFlags are those that several commands have in the same words.
func sharedFlags(commands []*cobra.Command) *pflag.FlagSet {
	count, shared := map[string]int{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, command := range commands {
		command.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			text := f.Name + f.Usage
			if count[text]++; !f.Hidden && count[text] == sharedBy {
				shared.AddFlag(f)
			}
		})
	}
	return shared
}

func number(flags *pflag.FlagSet) int {
	n := 0
	flags.VisitAll(func(*pflag.Flag) { n++ })
	return n
}

func has(flags *pflag.FlagSet, f *pflag.Flag) bool {
	other := flags.Lookup(f.Name)
	return other != nil && other.Usage == f.Usage && !other.Hidden
}

// writeShared writes the flags that stand once for several commands, and which command lacks some.
func writeShared(text *strings.Builder, commands []*cobra.Command, shared *pflag.FlagSet) {
	var names []string
	for _, command := range commands {
		var lacking []string
		shared.VisitAll(func(f *pflag.Flag) {
			if !has(command.NonInheritedFlags(), f) {
				lacking = append(lacking, "`--"+f.Name+"`")
			}
		})
		switch {
		case len(lacking) == 0:
			names = append(names, command.Name())
		case 2*len(lacking) < number(shared):
			names = append(names, command.Name()+" (without "+strings.Join(lacking, ", ")+")")
		}
	}
	fmt.Fprintf(text, "\n## Flags of servers\n\nFlags of %s:\n\n```\n%s```\n",
		strings.Join(names, ", "), shared.FlagUsagesWrapped(100))
}

func writeCommand(text *strings.Builder, command *cobra.Command, shared *pflag.FlagSet) {
	command.InitDefaultHelpFlag()
	command.Flags().Lookup("help").Hidden = true // all have it
	long := command.Long
	if long == "" {
		long = command.Short + "."
	}
	own, others := pflag.NewFlagSet("", pflag.ContinueOnError), 0
	command.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if has(shared, f) {
			others++
		} else {
			own.AddFlag(f)
		}
	})
	fmt.Fprintf(text, "\n## %s\n\n%s\n", command.Name(), long)
	if 2*others > number(shared) {
		text.WriteString("\nIt also has the [flags of servers](#flags-of-servers).\n")
	}
	fmt.Fprintf(text, "\n```\n%s\n", strings.TrimSuffix(command.UseLine(), " [flags]"))
	if own.HasAvailableFlags() {
		text.WriteString("\n" + own.FlagUsagesWrapped(100))
	}
	fmt.Fprintf(text, "\n%s\n```\n", unindented(command.Example))
}

func unindented(example string) string {
	lines := strings.Split(strings.TrimRight(example, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

const jsonChapter = `
## JSON

With ` + "`--json`" + ` a command prints one object on standard output; when it fails, with the keys ` + "`error`, `hint` and `exit_code`" + `.
The keys of ` + "`jobs`, `show`, `explain`, `cancel`, `retry` and `run`" + ` are the field names of ` + "`internal/wire/api.proto`" + `
(ListJobsResponse, JobDetail, ExplainResponse, ChangedJobs, ProgressReport), which stay; new ones may be added. All are always there: an
unknown instant is null, an empty list is []. Instants are RFC 3339 in UTC, durations seconds, sizes bytes. Numbers of attempts need 64
bits; jq keeps them from 1.7 on.

` + "```" + `
fairway jobs --json --state failed | jq -r '.jobs[].name'
fairway run workflow.yaml --json | jq '{succeeded, hits: .summary.cache_hits}'
` + "```" + `
`

const completionChapter = `
## Shell completion

Commands, flags, steps, parameters, inputs, and the names of jobs are completed. In bash that needs Debian's package bash-completion, and a new shell.

` + "```" + `
mkdir -p ~/.local/share/bash-completion/completions
fairway completion bash > ~/.local/share/bash-completion/completions/fairway
fairway completion zsh  > "${fpath[1]}/_fairway"
fairway completion fish > ~/.config/fish/completions/fairway.fish
` + "```" + `
`
