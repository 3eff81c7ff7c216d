package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"fairway/internal/cli/console"
)

// helpOf is what a command prints with --help.
func helpOf(t *testing.T, path string) string {
	t.Helper()
	var out, troubles bytes.Buffer
	arguments := append(strings.Fields(path)[1:], "--help")
	if code := execute(t.Context(), allCommands, arguments, strings.NewReader(""), &out, &troubles); code != 0 {
		t.Fatalf("%s --help: %s", path, troubles.String())
	}
	return out.String()
}

// A terminal of 80 columns breaks no line of any help but of examples, and no help has flags that are
// in no group beside others that are.
func TestHelpFitsATerminal(t *testing.T) {
	for _, command := range documented(allCommands(new(console.Console))) {
		help := helpOf(t, command.CommandPath())
		for line := range strings.Lines(help) {
			if !strings.HasPrefix(line, "  fairway ") &&
				utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s: %q has more than 80 columns", command.CommandPath(), line)
			}
		}
		_, others, ok := strings.Cut(help, "\nOthers:\n")
		if others, _, _ = strings.Cut(others, "\n\n"); ok && !strings.HasPrefix(strings.TrimSpace(others), "-h, --help") {
			t.Errorf("%s has flags in no group:\n%s", command.CommandPath(), others)
		}
	}
	if help := helpOf(t, "fairway run"); !strings.Contains(help, "\nWhat runs:\n      --set ") ||
		!strings.Contains(help, "\nWhere it runs:\n      --site ") || strings.Count(help, " --site ") != 4 {
		t.Errorf("the flags of run are not in groups:\n%s", help)
	}
}

// Whoever wrote a flag that is not there is led to the help of the command.
func TestUnknownFlagsNameTheHelpOfTheirCommand(t *testing.T) {
	for call, want := range map[string]string{
		"run --sett a=1": "see `fairway run --help`", "token --sett": "see `fairway token --help`",
		"--sett": "see `fairway help` and", "runn": "see `fairway help` and",
	} {
		var out, troubles bytes.Buffer
		code := execute(t.Context(), allCommands, strings.Fields(call), strings.NewReader(""), &out, &troubles)
		if code != 2 || !strings.Contains(troubles.String(), want) {
			t.Errorf("%s: exit code %d, %s", call, code, troubles.String())
		}
	}
}
