// Package examples holds the tests that run workflows of the folder examples as
// their READMEs say. That of examples/lambda, which needs programs from
// elsewhere, is among the scripts of test/cli.
package examples
