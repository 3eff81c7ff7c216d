package main

import "context"

func measurePeers(_ context.Context, _, _ string, _ int) []row { return nil }
