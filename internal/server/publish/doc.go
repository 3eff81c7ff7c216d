// Package publish keeps the results folder and the state's own storage element as the
// run needs them: it publishes committed versions, removes what nobody needs, and
// tidies both up when the run has ended.
//
// Package dispatch decides which version is published and when (commit.go
// there); publishLoop (publish.go) publishes it, and tells dispatch so.
//
// Guarantees:
//
//   - A published name changes from version to version in one rename, once for each
//     version, in order.
//   - A file in the results folder that this state has not put there, or that somebody has
//     changed since, is neither replaced nor removed. If it is in the way, it is set
//     aside under another name.
//   - In the storage element, only files of this state are removed.
package publish
