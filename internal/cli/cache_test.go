package cli

import (
	"io"
	"strings"
	"testing"

	"fairway/internal/cli/console"
)

// A command that takes two arguments does not say that it takes one.
func TestTooManyArgumentsAreNamed(t *testing.T) {
	for arguments, want := range map[string]string{
		"cache a b c": "cache takes at most 2 arguments, and not c too: fairway cache [NODE [PATTERN]]",
		"get a b c":   "get takes at most 2 arguments, and not c too: fairway get NAME|PATTERN [DESTINATION]",
		"files a b":   "files takes one pattern, and not b too",
	} {
		var text strings.Builder
		if code := execute(
			t.Context(), allCommands, strings.Fields(arguments), strings.NewReader(""), io.Discard, &text,
		); code != console.ExitUsage || !strings.Contains(text.String(), want) {
			t.Errorf("%s: it says %q", arguments, text.String())
		}
	}
}
