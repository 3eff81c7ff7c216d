// Package crash holds the test that kills servers and pilots, at random moments
// and at every named fault point, and looks whether anything was lost, repeated
// or changed by that.
package crash
