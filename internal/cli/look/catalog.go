package look

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/catalog"
	"fairway/internal/cli/console"
)

// translatedName is a name and what a catalogue makes of it.
type TranslatedNames struct {
	Names []translatedName `json:"names"`
}

type translatedName struct {
	LFN string `json:"lfn"`
	PFN string `json:"pfn"`
}

// CatalogCommand is `fairway catalog`.
func (c *Commands) CatalogCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Translate names by the file catalogue of a site",
		Long: `Translate names by the file catalogue of a site: a Trivial File Catalog
(storage.xml) or its successor (storage.json). A URL list of a workflow uses the
same rules (see "catalog" in docs/workflows.md).`,
		Example: `  fairway catalog pfn storage.json --protocol XRootD /store/data/7.root
  fairway catalog lfn storage.xml /pnfs/desy.de/cms/tier2/data/7.root`,
		Args: console.NoArgument,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(
		c.translateCommand("pfn FILE LFN...", "Tell where files with these logical names are",
			"  fairway catalog pfn storage.json --protocol XRootD /store/data/7.root",
			func(rules *catalog.Catalog, protocol, name string) (translatedName, error) {
				pfn, err := rules.PFN(protocol, name)
				return translatedName{LFN: name, PFN: pfn}, err
			}, func(t translatedName) string { return t.PFN }),
		c.translateCommand("lfn FILE PFN...", "Tell the logical names of files that are at these places",
			"  fairway catalog lfn storage.xml /pnfs/desy.de/cms/tier2/data/7.root",
			func(rules *catalog.Catalog, protocol, name string) (translatedName, error) {
				lfn, err := rules.LFN(protocol, name)
				return translatedName{LFN: lfn, PFN: name}, err
			}, func(t translatedName) string { return t.LFN }),
	)
	return command
}

func (c *Commands) translateCommand(
	use, short, example string, translate func(*catalog.Catalog, string, string) (translatedName, error),
	shown func(translatedName) string,
) *cobra.Command {
	var protocol, site, volume string
	command := &cobra.Command{
		Use: use, Short: short, Long: short + `, one a line in the order of the arguments.
If no rule leads from a name to another, the command says so and ends with 6.`,
		Example: example, Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, arguments []string) error {
			rules, err := catalog.ReadFile(arguments[0], site, volume)
			if err != nil {
				return &console.Failure{Code: console.ExitBadFile, Err: err}
			}
			all := []translatedName{}
			for _, name := range arguments[1:] {
				one, err := translate(rules, protocol, name)
				if known := rules.Protocols(); errors.Is(err, catalog.ErrNoRule) && !slices.Contains(known, protocol) {
					return console.Fail(console.ExitNotFound, "protocols are "+strings.Join(known, ", "),
						"%s has no rules for the protocol %s",
						arguments[0], protocol)
				}
				if errors.Is(err, catalog.ErrNoRule) {
					return &console.Failure{Code: console.ExitNotFound, Err: fmt.Errorf("%s: %w", arguments[0], err)}
				}
				if err != nil {
					return err
				}
				all = append(all, one)
			}
			return c.Answer(TranslatedNames{all}, func() {
				for _, one := range all {
					fmt.Fprintln(c.Out, shown(one))
				}
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&protocol, "protocol", catalog.Protocol, "the rules of this protocol")
	flags.StringVar(&site, "site", "", "this site of a storage.json (default: the first)")
	flags.StringVar(&volume, "volume", "", "this volume of the site (default: the first)")
	return command
}
