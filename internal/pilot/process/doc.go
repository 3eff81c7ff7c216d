// Package process holds the processes of attempts: it starts them, knows all of them, and
// ends them.
//
// Guarantees:
//
//   - No process of an attempt gets lost, whatever it does to leave its parent, its process
//     group or its session: [Tree] ends all of them with the attempt. When the pilot is killed,
//     the kernel kills the first process of each attempt, and [EndLeft] in the next pilot kills
//     the rest.
//   - An attempt that goes over its time or memory is told of within [WatchInterval] by
//     [Watchdog]. Where the pilot may make cgroups, the kernel itself limits memory
//     ([MemoryBoxes]).
//   - What an attempt prints is kept up to a limit ([Stream]), and which files it opens is
//     noticed where the kernel permits that ([OpenWatch]).
//
// It knows nothing of jobs, sandboxes and the server. One [Tree] serves a whole program.
package process
