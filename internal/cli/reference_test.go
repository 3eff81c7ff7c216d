package cli

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
)

var update = flag.Bool("update", false, "rewrite docs/commands.md")

const referenceFile = "../../docs/commands.md"

func TestReferenceIsUpToDate(t *testing.T) {
	want := reference(allCommands(new(console.Console)))
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
	for _, command := range documented(allCommands(new(console.Console))) {
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

// reference lists the commands. What --help tells of each stands there only.
func reference(root *cobra.Command) string {
	var text strings.Builder
	text.WriteString("# Commands\n\n")
	text.WriteString("`fairway COMMAND --help` tells flags and examples; `fairway help` lists the commands as here\n" +
		"(made by `go test ./internal/cli -update`).\n")
	for _, group := range append(root.Groups(), &cobra.Group{Title: "Others"}) {
		fmt.Fprintf(&text, "\n## %s\n\n| command | what it does |\n| --- | --- |\n", strings.TrimSuffix(group.Title, ":"))
		for _, command := range documented(root) {
			if command.GroupID == group.ID {
				use := strings.ReplaceAll(strings.TrimSuffix(command.UseLine(), " [flags]"), "|", `\|`)
				fmt.Fprintf(&text, "| `%s` | %s |\n", use, command.Short)
			}
		}
	}
	text.WriteString(jsonChapter)
	text.WriteString(keysTable(root))
	text.WriteString("\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n")
	for _, e := range console.ExitCodes {
		fmt.Fprintf(&text, "| %d | %s |\n", e.Code, e.Meaning)
	}
	text.WriteString("\nOutput that cannot be printed, as on a full disk, is an error. A standard output that is closed" +
		"\n(`>&-`) counts as `/dev/null`, which the runtime of Go opens in its place before the program begins.\n")
	text.WriteString(completionChapter)
	return text.String()
}

const jsonChapter = `
## JSON

With ` + "`--json`" + ` a command prints one object on standard output; when it fails, with the keys
` + "`error`, `hint`, `problems` and `exit_code`" + `. Keys stay; new ones may be added. What is in those of
which the table tells no more has the field names of ` + "`internal/wire/api.proto` and `rights.proto`" + `.
All are always there: an unknown instant is null, an empty list is []. Instants are RFC 3339 in UTC,
durations seconds, sizes bytes. Numbers of attempts need 64 bits; jq keeps them from 1.7 on.

` + "```" + `
fairway jobs --json --state failed | jq -r '.jobs[].name'
fairway run workflow.yaml --json | jq '{succeeded, hits: .summary.cache_hits}'
` + "```" + `
`

const completionChapter = `
## Shell completion

Commands, flags, steps, parameters, inputs, and the names of jobs are completed. In bash that needs
Debian's package bash-completion, and a new shell.

` + "```" + `
mkdir -p ~/.local/share/bash-completion/completions
fairway completion bash > ~/.local/share/bash-completion/completions/fairway
fairway completion zsh  > "${fpath[1]}/_fairway"
fairway completion fish > ~/.config/fish/completions/fairway.fish
` + "```" + `
`
