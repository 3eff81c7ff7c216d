// Package stage brings files to attempts and away from them: what a command finds in its
// sandbox, and what becomes of what it leaves there.
//
// Guarantees:
//
//   - An attempt begins with the inputs that the TaskQueue has chosen, or not at all: what a
//     job has made has the size and checksum that were recorded, and a file from outside is as
//     the run took it up ([Inputs.StageIn]).
//   - An attempt that wrote to an input fails, and the file is not given to others
//     ([Inputs.CheckUnchanged]).
//   - An attempt may do with its sandbox what it likes. What is looked for and removed
//     afterwards is found beneath it, through a descriptor from before ([Slot]).
//   - An output counts only once it is stored, durably, under a PFN that no other attempt uses
//     ([Area.StageOut]). Nobody can write to it any more.
//   - A pilot on another machine than its server reads and writes a file in place only where
//     that is proved to be the same file, and otherwise through the server ([Reach]).
//
// It starts no process. Several attempts may be staged at the same time; each [Slot] belongs
// to one of them.
package stage
