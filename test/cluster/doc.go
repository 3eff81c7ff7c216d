// Package cluster holds the tests that run workflows on clusters: where everything goes wrong,
// they look whether anything was lost, repeated or changed by that; where hosts share their
// caches, from where each file came.
//
// A cluster is some nodes and a login node, each a network namespace with a name, a
// machine identity and a scratch folder of its own. The batch system is a mock: one of
// the test, which behaves as one and misbehaves on command.
package cluster
