// Package warm holds the workers of a pilot: programs that are started once, and then fork for
// each job of steps that name them. To start an interpreter with its modules takes longer than
// many a job.
//
// Guarantees:
//
//   - A job that a worker has begun has the sandbox, the variables, the streams, the cgroup and
//     the limits of any other, and is a child of the pilot as any other. A worker never runs a
//     job itself.
//   - A job is begun once. A process that a worker forks waits until the pilot lets it go, and ends
//     when the pilot gives it up.
//   - A worker that dies, does not answer within [AnswerTime], or grows is replaced. If one fails
//     again at once, the job is to be started without: [ErrNone].
//   - There are at most [MaxWorkers] at a time; the one that was idle for longest makes room.
//
// # What a worker does
//
// Descriptor 3 is a socket (SOCK_STREAM). For each job a byte comes with five descriptors: standard
// input, output and error of the job, a pipe, and a file of texts that end with a zero byte: the path
// of the program, the working folder, the number of the pilot's process, how many words the command
// has, these words, and the variables as NAME=VALUE. The worker forks a process that leaves its
// family, so that the pilot becomes its parent, and writes its number in decimal digits and a line
// break. This process reads a byte of the pipe; if there is none, it ends. Else it makes a session of
// its own, asks to be killed with its parent, takes the streams, the variables and the folder, and
// does what the words say. worker.py does this for Python, and with r.py for R.
package warm
