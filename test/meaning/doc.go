// Package meaning compares what the program makes of random workflows with what docs/steps.md
// says that they mean. The workflows have steps of all kinds, values with every odd character,
// inputs that come, change and go between runs, and runs that are killed. The model that says
// what the results are shares no code with the program.
package meaning
