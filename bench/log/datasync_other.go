//go:build !linux

package main

import "os"

// datasync makes the file durable, as the journal does.
func datasync(f *os.File) error { return f.Sync() }
