package cli

import "fairway/internal/cli/console"

// flagGroups are the flags of commands that have many, in the order in which people need them.
var flagGroups = []console.FlagGroup{
	{Title: "What runs", Flags: "set until force dry-run keep-going priority time-scale size-scale name key upload " +
		"each reads writes needs tasks nodes once attempts checkpoint"},
	{Title: "Results", Flags: "results keep-results no-reuse storage print"},
	{Title: "Where it runs", Flags: "site pilots has tool environment server listen group wait-anyway"},
	{Title: "Caches and sandboxes", Flags: "cache cache-space cache-policy placement watch-inputs keep-sandbox " +
		"strict-sandboxes"},
	{Title: "While it runs", Flags: "detach follow watch temporary until-stdin-ends notify web record"},
	{Title: "A server for several people", Flags: "state store standby lease retention compare-inputs shares rights " +
		"web-certificate web-key"},
}
