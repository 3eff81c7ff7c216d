// Package feed gives flow the files of the workflow's declared inputs.
//
// Finder answers which files an input has: by patterns of paths and URLs, by lists, or
// made for a trace. Small files are known by their contents, others by size, time and
// inode. Feeder feeds them: first what every input has when the run begins, in the
// order of the inputs, so that the same files give the same run; then what comes to
// open inputs, until a rule or a person closes them.
//
// Guarantees:
//
//   - A file is fed once, however often it is seen, with a record that is durable
//     together with what flow makes of it.
//   - A file of a watched folder is fed when it has been left alone for StableTime.
package feed
