// Package docs holds the pages from which the program explains its codes.
package docs

import _ "embed"

var (
	//go:embed errors.md
	errors string
	//go:embed failure-reasons.md
	failureReasons string
	//go:embed http.md
	http string
)

// Errors returns the page about the program's exit codes and errors.
func Errors() string { return errors }

// FailureReasons returns the page about why messages were not handled.
func FailureReasons() string { return failureReasons }

// HTTP returns the page about the host's HTTP interfaces.
func HTTP() string { return http }
