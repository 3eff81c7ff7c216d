// Package copies copies what must not be copied, for TestVetTellsCopies.
package copies

import "fairway/lib/orwl"

func handle(h orwl.Handle)     {}
func pair(p orwl.Pair)         {}
func location(l orwl.Location) {}
func gate(g orwl.Gate)         {}
func server(s orwl.Server)     {}
func trace(t orwl.Trace)       {}
