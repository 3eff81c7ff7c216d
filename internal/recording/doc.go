// Package recording writes the inputs and the decisions of a run's cores,
// internal/dispatch and internal/flow, to a file, and replays the file: the same
// inputs at the same instants must lead to the same effects, byte for byte.
//
// A recording is a text file, one JSON object a line:
//
//	{"begin": {...}}                               a server begins: format, workflow, parameters, limits of the TaskQueue
//	{"durable": {"table", "run", "key", "body"}}          one for each record that the cores are loaded from
//	{"load": true, "effects": {...}}               the cores are loaded from the durable lines before
//	{"at", "dispatch": "Sync", "input", "effects"} a step of dispatch
//	{"at", "flow": "Arrived", "input", "effects"}  a step of flow
//	{"cut": "why"}                                 the recording ends before the run does
//
// In place of "effects" a step may have "refused", the error. Inputs and
// effects are the fields of the types of dispatch and flow by name; empty fields
// of effects are left out. Bytes stand as text where they are UTF-8, else as
// {"base64": "..."}; names are UTF-8. Maps are sorted, so the same values give
// the same bytes. A file may hold several servers, one after the other. If a
// server was killed in the middle of a line, the next server cuts that line off,
// and [Replay] skips it.
package recording
