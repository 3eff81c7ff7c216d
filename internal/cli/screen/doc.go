// Package screen draws on terminals: tables, summaries, and how a run goes on. What others have
// named or printed cannot steer the terminal through it.
package screen
