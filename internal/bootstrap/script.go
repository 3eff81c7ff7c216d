package bootstrap

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fairway/internal/access"
)

// Start is how the shell of a node starts a pilot: what comes before the modules and the
// setup of a site, and what comes after them. What the setup prints goes to the log.
type Start struct{ Before, After string }

// InPlace starts a program that the node sees. What it says is added to a log that the
// node sees too.
func InPlace(program, log string, arguments ...string) Start {
	s := Start{Before: fmt.Sprintf("exec >>%s 2>&1 </dev/null\n", Quote(log)), After: "exec"}
	for _, word := range append([]string{program}, arguments...) {
		s.After += " " + Quote(word)
	}
	s.After += "\n"
	return s
}

// Load is what a script carries to a node that shares nothing with the server.
type Load struct {
	Connection access.Connection
	Authority  []byte // its certificate (access.Authority.Certificate)
	Program    Program
	Scratch    string   // a folder of the node; may begin with a variable
	Arguments  []string // of the pilot, beside its connection
}

//go:embed start.sh
var startScript string

// patience, in minutes, is how long the pauses of the script are together.
const patience = 5

// Carried starts a program that the script fetches from the server.
func Carried(l Load) (Start, error) {
	c := &l.Connection
	connection, err := c.Encode()
	if err != nil {
		return Start{}, err
	}
	folder, err := onNode(l.Scratch)
	if err != nil {
		return Start{}, err
	}
	if !hashForm.MatchString(l.Program.Hash) || !plainName.MatchString(c.Launch) {
		return Start{}, fmt.Errorf("a script cannot name the launch %q and the program %q", c.Launch, l.Program.Hash)
	}
	// The folder is new, or the script ends: nobody else has arranged what is in it.
	before := fmt.Sprintf("dir=%s/fairway.%s.$$\n(umask 077 && mkdir -p %s && mkdir \"$dir\") && exec 3>&2 "+
		">\"$dir/log\" 2>&1 || exit 73\n",
		folder, c.Launch, folder)
	var arguments strings.Builder
	for _, word := range l.Arguments {
		arguments.WriteString(Quote(word) + " ")
	}
	addresses := make([]string, len(c.Addresses))
	for i, address := range c.Addresses {
		addresses[i] = Quote(address)
	}
	after := strings.NewReplacer(
		"@AUTHORITY@", strings.TrimSpace(string(l.Authority)), "@HEADERS@", strings.Join(c.Headers(), "\n"),
		"@CONNECTION@", strings.TrimSpace(string(connection)), "@HASH@", l.Program.Hash, "@SIZE@", fmt.Sprint(l.Program.Size),
		"@PATH@", Prefix, "@NAME@", access.ServerName, "@ADDRESSES@", strings.Join(addresses, " "),
		"@PATIENCE@", fmt.Sprint(patience), "@ARGUMENTS@", arguments.String(),
	).Replace(startScript)
	return Start{before, after}, nil
}

// plainName is of what means nothing to the shell.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

var beginsWithVariable = regexp.MustCompile(`^\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))`)

// onNode is a folder of a node for the shell there. TMPDIR is /tmp where it is not set,
// and another variable that is not set ends the script.
func onNode(folder string) (string, error) {
	found := beginsWithVariable.FindStringSubmatch(folder)
	if found == nil {
		if !strings.HasPrefix(folder, "/") {
			return "", fmt.Errorf("the folder %q of nodes begins with neither / nor a variable", folder)
		}
		return Quote(folder), nil
	}
	name := found[1] + found[2]
	value := fmt.Sprintf("\"${%s:?is not set on this node: change scratch of the site}\"", name)
	if name == "TMPDIR" {
		value = "\"${TMPDIR:-/tmp}\""
	}
	if rest := folder[len(found[0]):]; rest != "" {
		value += Quote(rest)
	}
	return value, nil
}

// Quote makes one word of the shell of a text.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Started removes what a script has brought into a folder, once the program runs and has
// read its connection: nothing of it is needed any more. The log stays.
func Started(folder string) {
	for _, name := range []string{"fairway", "connection", "headers", "authority", "none"} {
		_ = os.Remove(filepath.Join(folder, name))
	}
}

// Log is what the script and the program say, in the folder into which it was brought.
func Log(folder string) string { return filepath.Join(folder, "log") }

// Ended removes the folder with the log, where there was nothing to complain of.
func Ended(folder string) error {
	_ = os.Remove(Log(folder))
	return os.Remove(folder)
}
