// Package rules holds the rules of the repository that no linter knows, as
// tests: comments, names, sizes, what passive packages may do, and that the
// documentation names every command and package there is. Each rule says why
// it stands; a rule that gets in the way is to be changed here, with a reason,
// and not to be worked around.
package rules
