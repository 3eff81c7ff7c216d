// Package console is what all commands have in common: what they read and print, the flags that each
// of them has, how they ask servers and the records of folders, and what they end with.
package console
