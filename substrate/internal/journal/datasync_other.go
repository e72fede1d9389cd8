//go:build !linux

package journal

// Datasync syncs the file.
func (f osFile) Datasync() error { return f.Sync() }
