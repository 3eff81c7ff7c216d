package flow

import _ "embed"

// Workflows that several tests run.
var (
	//go:embed workflow/testdata/lambda.yaml
	lambda string
	//go:embed workflow/testdata/calibrated.yaml
	calibrated string
	//go:embed workflow/testdata/joined.yaml
	joined string
	//go:embed workflow/testdata/sized.yaml
	sized string
)
