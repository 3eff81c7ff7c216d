// Package yamlfile reads YAML files that people write, strictly: an unknown or
// repeated key, a value of another kind and a second document are problems, each
// with its file, line and column and with what to write instead. All problems of
// a file are found in one reading, up to MaxProblems.
//
// It knows no file in particular: packages flow and site say which keys there are.
package yamlfile
