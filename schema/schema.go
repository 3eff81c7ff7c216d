// Package schema has the JSON Schema of workflow files, for editors.
package schema

import _ "embed"

// Workflow is the JSON Schema (draft 2020-12) of workflow files. It knows the
// same keys as the parser; what only the parser can see, such as a missing
// input, it lets pass.
//
//go:embed workflow.schema.json
var Workflow []byte
