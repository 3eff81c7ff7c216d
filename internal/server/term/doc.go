// Package term says which server has a state, and how people reach it, where the lock of
// the state may be local to a node: on a network file system.
//
// A term is the time for which one server has a state. Terms are numbered, and each has a
// file in .fairway/servers/, whose name has its number and which can be made only once. The
// server of the highest number has the state; it writes its file again every [BeatTime].
//
//   - A server begins the next term if (a) the term before has ended, (b) the server of that
//     term ran on this machine and the lock is free, or (c) the file of that term has not
//     changed for [SilentTime] by the clock of the server that waits. No two clocks are compared.
//   - A server trusts a beat for [TrustTime]. After that it must beat before it changes anything
//     ([Term.Good]). If another server has followed it, the beat shows that, and it changes
//     nothing any more.
//   - A server that follows one which did not end gives the store another inode
//     (folder.OpenStore). So nobody reads what the old server may still write.
//
// A state whose servers never were batch jobs has no terms: there the lock is enough, as
// docs/files-on-disk.md says.
package term
