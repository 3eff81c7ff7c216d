package console

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Takes is how many arguments a command takes, and what they are; no most
// means any number.
func Takes(least, most int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		switch {
		case len(arguments) < least:
			return fmt.Errorf("%s needs a %s: %s", command.Name(), what, command.UseLine())
		case most == 0 && len(arguments) > 0:
			return fmt.Errorf("%s takes flags only, and not %q: %s", command.Name(), arguments[0], command.UseLine())
		case most > 1 && len(arguments) > most:
			return fmt.Errorf("%s takes at most %d arguments, and not %s too: %s", command.Name(), most,
				strings.Join(arguments[most:], " "), command.UseLine())
		case most == 1 && len(arguments) > most:
			return fmt.Errorf("%s takes one %s, and not %s too", command.Name(), what, strings.Join(arguments[most:], " "))
		}
		return nil
	}
}

// Choice is a flag that takes one of a few words.
type Choice struct {
	value *string
	words []string
}

// ChoiceOf is the flag whose word is put into value, where the default is.
func ChoiceOf(value *string, words ...string) Choice { return Choice{value, words} }

// OneOf gives a command a flag that takes one of words. The value that is there is the
// default.
func OneOf(command *cobra.Command, value *string, name, help string, words ...string) {
	command.Flags().Var(Choice{value, words}, name, help)
	_ = command.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// String is part of pflag.Value.
func (c Choice) String() string {
	if c.value == nil {
		return ""
	}
	return *c.value
}

// Type is part of pflag.Value.
func (c Choice) Type() string { return "string" }

// Set is part of pflag.Value.
func (c Choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return errors.New("it is none of them")
	}
	*c.value = word
	return nil
}

// Parsed gives a command a flag whose values read takes, one after the other. An error of it may be a *Failure.
// A default is read at once.
func Parsed(command *cobra.Command, name, byDefault, help string, read func(text string) error) {
	p := &parsed{read: read}
	if byDefault != "" {
		if err := p.Set(byDefault); err != nil {
			panic(err)
		}
	}
	command.Flags().Var(p, name, help)
}

type parsed struct {
	text string
	read func(string) error
}

// String is part of pflag.Value.
func (p *parsed) String() string { return p.text }

// Type is part of pflag.Value.
func (*parsed) Type() string { return "string" }

// Set is part of pflag.Value.
func (p *parsed) Set(text string) error {
	p.text = text
	return p.read(text)
}

// ParametersFlag gives a command the flag --set, as NAME=VALUE.
func (c *Console) ParametersFlag(command *cobra.Command, values *map[string]string) {
	help := "give a parameter a value: name=value (may be repeated)"
	Parsed(command, "set", "", help, func(setting string) error {
		name, value, ok := strings.Cut(setting, "=")
		if !ok || name == "" {
			return Fail(ExitUsage, "write --set name=value", "--set %s names no value", setting)
		}
		if !utf8.ValidString(value) {
			return Fail(ExitUsage, "", "--set %s: the value %q is not UTF-8", name, value)
		}
		if *values == nil {
			*values = map[string]string{}
		}
		(*values)[name] = value
		return nil
	})
	_ = command.RegisterFlagCompletionFunc("set", c.CompleteParameters)
}

// AnyNumber of arguments may be given.
const AnyNumber = -1

// What commands mostly take.
var (
	NoArgument = Takes(0, 0, "")
	OneJob     = Takes(1, 1, "JOB")
	SomeJobs   = Takes(1, AnyNumber, "JOB")
	MaybeFile  = Takes(0, 1, "FILE")
)

// FlagError says what a flag takes, where its value was something else.
func FlagError(_ *cobra.Command, err error) error {
	if failed, ok := errors.AsType[*Failure](err); ok {
		return failed
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	kind := "a " + flag.Value.Type()
	if c, ok := flag.Value.(Choice); ok {
		last := len(c.words) - 1
		return fmt.Errorf("--%s is %s or %s, not %q", flag.Name, strings.Join(c.words[:last], ", "), c.words[last],
			invalid.GetValue())
	}
	switch name := flag.Value.Type(); {
	case strings.HasPrefix(name, "uint"):
		kind = "a whole number that is not negative"
	case strings.HasPrefix(name, "int"):
		kind = "a whole number"
	case strings.HasPrefix(name, "float"):
		kind = "a number"
	case name == "bool":
		kind = "true or false"
	}
	return fmt.Errorf("--%s is %s, not %q", flag.Name, kind, invalid.GetValue())
}

// PlainTypes has the help name what one use of a flag takes: of a flag that may be
// repeated, a string and no array of them.
func PlainTypes(command *cobra.Command) {
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "stringArray" {
			f.Value, f.DefValue = oneString{f.Value}, ""
		}
	})
	for _, below := range command.Commands() {
		PlainTypes(below)
	}
}

type oneString struct{ pflag.Value }

// Type is part of pflag.Value.
func (oneString) Type() string { return "string" }

// HelpCommand replaces cobra's, which ends well where there is no such command.
func HelpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, command := range root.Commands() {
				if !command.Hidden {
					names = append(names, command.Name()+"\t"+command.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, arguments []string) error {
			command, rest, err := root.Find(arguments)
			if err != nil || len(rest) > 0 {
				return Fail(ExitUsage, "see `fairway help`", "there is no command %q", strings.Join(arguments, " "))
			}
			command.InitDefaultHelpFlag()
			return command.Help()
		},
	}
}

// ShellsOnly has the completion command refuse what is no shell that it knows.
func ShellsOnly(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.Name() != "completion" {
			continue
		}
		command.Args = cobra.ArbitraryArgs
		command.RunE = func(command *cobra.Command, arguments []string) error {
			if len(arguments) > 0 {
				return Fail(ExitUsage, "write bash, fish, powershell or zsh", "there is no completion for %q", arguments[0])
			}
			return command.Help()
		}
	}
}
