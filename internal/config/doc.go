// Package config reads Longshore's two files: the operator's host config (longshore.yaml) and the deployer's manifest
// (consumers.yaml).
//
// Both are strict. Whatever a file says that the host would not do is a fault, and all faults of a file are reported at
// once, each with its place and with what would be right:
//
//	consumers.yaml:7:13: consumers[0].lease: 5 is of the wrong type (want a duration such as 5s, 1m30s or 250ms)
//
// One JSON Schema a file, made from the Go types of this package, is both what editors are given (HostSchema,
// ManifestSchema) and what the files are checked against. A file passes through these steps:
//
//	bytes ── document.go ──▶ tree of JSON values + place of each
//	      ── schema.go ────▶ faults of form; faulty values are pruned
//	      ── check.go ─────▶ hostFile or manifestFile of files.go, the Go types of the schema
//	      ── resolve.go, plan.go, bounds.go ▶ faults of sense (ceilings, pairs of keys), then a Host or a Plan
//
// The steps go on past the first fault, so that one run names them all; a check that needs a pruned value is left out
// rather than made up.
package config
