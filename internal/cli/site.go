package cli

import (
	"github.com/spf13/cobra"

	"fairway/internal/site"
)

// completeSites are the names that --site takes.
func (c *console) completeSites(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	folder, err := c.workflowFolder()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, _ := site.Load(folder)
	return each(all, func(s *site.Site) string { return s.Name }), cobra.ShellCompDirectiveNoFileComp
}
