// Package taskqueue is the vocabulary of the TaskQueue: what is said to it and by it, as types that
// decide nothing. Package dispatch is the TaskQueue itself; who only names accounts, shares or
// records needs none of its rules.
package taskqueue
