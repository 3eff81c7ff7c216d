package flow

import "fairway/internal/yamlfile"

// Problem is one thing wrong in a workflow file.
type Problem = yamlfile.Problem

// Problems are all that is wrong in a workflow file, in the order of its
// lines. It is the error of [Parse] and [New].
type Problems = yamlfile.Problems
