// Package launcher starts processes of a job of several tasks on the nodes of its other tasks, as
// mpirun wants them. The first task asks (Run); each other one serves (Serve), within its own
// sandbox, processes and limits, so that nothing that was started outlives it. They know each other by
// the keys of their gang: nobody else can have anything started, and no node needs ssh.
package launcher
