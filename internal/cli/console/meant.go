package console

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// What a command is about, where both a folder and $FAIRWAY_SERVICE could be meant. The rule is the
// same for all commands that ask, and stands in docs/running-again.md.

// AsksServers marks commands that only a server which takes workflows can answer: the folder of a
// run is never meant.
const AsksServers = "fairway_asks_servers"

// OpensHere marks commands that open a run, in this very folder or at a server: a run that is under
// way here is meant, and none that has ended.
const OpensHere = "fairway_opens_here"

// Marked gives commands a mark.
func Marked(mark string, commands ...*cobra.Command) []*cobra.Command {
	for _, command := range commands {
		if command.Annotations == nil {
			command.Annotations = map[string]string{}
		}
		command.Annotations[mark] = ""
	}
	return commands
}

// hasMark reports whether a command, or one above it, has a mark.
func hasMark(command *cobra.Command, mark string) bool {
	for ; command != nil; command = command.Parent() {
		if _, ok := command.Annotations[mark]; ok {
			return true
		}
	}
	return false
}

// ChooseMeant decides between the folder and the server that $FAIRWAY_SERVICE names. --server names a
// server, whatever stands in the folder; -C a folder; the number of a run a server, since runs of
// folders have none. Otherwise a run in the folder wins, which is what that folder is for.
func (c *Console) ChooseMeant(command *cobra.Command) {
	variable := os.Getenv(ServerVariable)
	named := command.Root().PersistentFlags().Lookup("server")
	if variable == "" || named == nil || named.Changed || command.Flags().Lookup("server") != named {
		return
	}
	folder, err := c.WorkflowFolder()
	has := IsFolderOfRun(folder) || isLasting(folder)
	if c.Dir == "" && hasMark(command, OpensHere) {
		folder, err = filepath.Abs(".")
		has = isUnderwayIn(folder)
	}
	onlyServer := c.Number != 0 || hasMark(command, AsksServers)
	switch {
	case onlyServer && !isLasting(folder), c.Dir == "" && (err != nil || !has):
		return
	case c.Dir == "" && !sameFile(folder, variable):
		c.meant = fmt.Sprintf("fairway: this is about %s; --server \"$%s\" asks the server", whatIsIn(folder),
			ServerVariable)
	}
	c.Service = ""
}

// ByVariable reports whether a command asks a server only because $FAIRWAY_SERVICE names it.
func (c *Console) ByVariable(command *cobra.Command) bool {
	named := command.Flag("server")
	return c.Service != "" && named != nil && !named.Changed
}

// TellMeant tells once which of two is meant, and how to name the other.
func (c *Console) TellMeant() {
	if c.meant != "" {
		c.Announce(c.meant)
		c.meant = ""
	}
}

func whatIsIn(folder string) string {
	if isLasting(folder) {
		return "the server in " + FolderText(folder)
	}
	return "the run in " + FolderText(folder)
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}
