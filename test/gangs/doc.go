// Package gangs has tests of jobs of several tasks that run as they do for people: with a server,
// pilots, and tasks that are processes, talk with each other, and are killed.
package gangs
