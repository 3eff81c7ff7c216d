// Package cluster holds the test that runs a workflow on a cluster where everything goes
// wrong, and looks whether anything was lost, repeated or changed by that.
//
// The cluster is four nodes and a login node, each a network namespace with a name, a
// machine identity and a scratch folder of its own. The batch system is a mock: one of
// the test, which behaves as one and misbehaves on command.
package cluster
