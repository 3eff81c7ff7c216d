package console

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// FlagGroup are flags that belong together, for whoever reads the help of a command.
type FlagGroup struct {
	Title string
	Flags string // their names, with blanks between
}

// helpColumns is how wide help is: all terminals have as many.
const helpColumns = 80

// manyFlags is from how many flags on a command lists them in groups.
const manyFlags = 12

// GroupHelp breaks the help of all commands for a terminal of 80 columns, and lists the flags of those
// that have many in groups. What is in no group comes last.
func GroupHelp(root *cobra.Command, groups []FlagGroup) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(command *cobra.Command, arguments []string) {
		template := command.UsageTemplate()
		for what, flags := range map[string]string{
			"Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}": listed(command.LocalFlags(), groups),
			"{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}":     wrapped(command.InheritedFlags()),
		} {
			template = strings.Replace(template, what, fmt.Sprintf("{{%q}}", flags), 1)
		}
		command.SetUsageTemplate(template)
		command.Long = reflowed(command.Long)
		help(command, arguments)
	})
}

func reflowed(text string) string {
	var all strings.Builder
	column := 0
	for line := range strings.Lines(text) {
		if line == "\n" || strings.HasPrefix(line, " ") {
			if column > 0 {
				all.WriteByte('\n')
			}
			column = 0
			all.WriteString(line)
			continue
		}
		for word := range strings.FieldsSeq(line) {
			switch wide := utf8.RuneCountInString(word); {
			case column == 0:
				column = wide
			case column+1+wide > helpColumns:
				all.WriteByte('\n')
				column = wide
			default:
				all.WriteByte(' ')
				column += 1 + wide
			}
			all.WriteString(word)
		}
	}
	return all.String()
}

func wrapped(flags *pflag.FlagSet) string {
	return strings.TrimRight(flags.FlagUsagesWrapped(helpColumns), " \n")
}

func listed(flags *pflag.FlagSet, groups []FlagGroup) string {
	number, grouped := 0, map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			number++
		}
	})
	var parts []string
	part := func(title string, add func(*pflag.FlagSet)) {
		of := pflag.NewFlagSet(title, pflag.ContinueOnError)
		of.SortFlags = false
		if add(of); of.HasAvailableFlags() {
			parts = append(parts, title+":\n"+wrapped(of))
		}
	}
	for _, g := range groups {
		if number < manyFlags {
			break
		}
		part(g.Title, func(of *pflag.FlagSet) {
			for name := range strings.FieldsSeq(g.Flags) {
				if f := flags.Lookup(name); f != nil {
					of.AddFlag(f)
					grouped[name] = true
				}
			}
		})
	}
	rest := "Flags"
	if len(parts) > 0 {
		rest = "Others"
	}
	part(rest, func(of *pflag.FlagSet) {
		flags.VisitAll(func(f *pflag.Flag) {
			if !grouped[f.Name] {
				of.AddFlag(f)
			}
		})
	})
	return strings.Join(parts, "\n\n")
}
