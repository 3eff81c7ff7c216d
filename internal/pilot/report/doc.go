// Package report keeps what a pilot has to tell the TaskQueue.
//
// Guarantees:
//
//   - A result is told until the TaskQueue has acknowledged it ([Pending]).
//   - While the TaskQueue is away, results are on disk too ([Spool]): a pilot that ends
//     meanwhile loses no result, since the next one on the node tells them.
//   - The TaskQueue can read what is told, whatever programs print and files are called: it is
//     valid UTF-8 and of bounded length.
package report
