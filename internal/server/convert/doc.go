// Package convert makes messages (package wire) of the types of dispatch and flow,
// and back. The messages of the pilot protocol are those of dispatch in other
// clothes; nothing is decided here. What a pilot tells for people is bounded
// (MaxText, MaxNotes).
package convert
