// Package folder knows the folder of a workflow: what its state folder holds and
// where (Layout), whose it is (Claim), who works with it (Lock), and what of it
// may be removed (Clean).
//
// Guarantees:
//
//   - One process at a time holds the lock of a state. The kernel gives it up when
//     the process ends, however it ends.
//   - A state has an identity that no other state has, also not a copy of the folder.
//     Only what bears that identity belongs to the state.
//   - Clean removes nothing that Fairway has not put there, and follows no link.
package folder
