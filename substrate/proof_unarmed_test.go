//go:build !failpoint

package substrate

// arm does nothing: this program has no failpoints.
func (e *errand) arm(string) <-chan struct{} { return nil }
