// Package pattern tells which names a pattern with placeholders and wildcards fits, which values
// its placeholders have then, and whether two patterns can fit the same name.
//
// The package is passive, and its values are immutable: any number of goroutines may use them.
package pattern
