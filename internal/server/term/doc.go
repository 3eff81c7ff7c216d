// Package term says which server has a state, and how people reach it, where the lock of
// the state may be local to a node: on a network file system.
//
// A term is the time for which one server has a state. Terms are numbered, and each has a
// file in .fairway/servers/, which bears its number and can be made only once. The server
// of the highest number has the state; it writes its file again every [BeatTime].
//
//   - A server begins the next term if the one before has ended, if its server ran on this
//     machine and the lock is free, or if its file has not changed for [SilentTime], on the
//     watch of who waits. Nobody compares clocks.
//   - A server trusts a beat for [TrustTime]. Then it must beat before it changes anything
//     ([Term.Good]). It sees that another one has followed, and changes nothing any more.
//   - Who follows a server that did not end gives the store another inode
//     (folder.OpenStore). What the other may still write, nobody reads.
//
// A state whose servers never were batch jobs has no terms: there the lock is enough, as
// docs/operations.md says.
package term
