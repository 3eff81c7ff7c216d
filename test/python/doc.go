// Package python runs the tests of the Python client and of the plugin for Snakemake, which stand in
// python, with the fairway of this commit.
package python
