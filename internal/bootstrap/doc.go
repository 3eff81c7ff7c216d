// Package bootstrap brings the program that is the pilot to a node, and says how the
// shell there starts it.
//
//   - A state keeps copies of the program, each under its hash ([Keep]). So an upgrade
//     does not disturb launches that wait in a queue: they start the program that they
//     were submitted with. A copy goes when no launch uses it ([Sweep]).
//   - Nodes that see the folder of the state start the copy there ([InPlace]).
//   - Nodes that share nothing with the server get it over TLS ([Carried], [Handler]).
//     The script of the launch carries the connection file. It needs a POSIX shell and one
//     of curl, wget, python3 and openssl. It talks to nobody but a server of the state's
//     authority, says the token in no argument of a process, and runs nothing whose hash
//     is not the right one.
//
// What a carried script says is secret: whoever reads it can speak for the launch.
package bootstrap
