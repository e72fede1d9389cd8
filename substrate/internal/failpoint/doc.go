// Package failpoint names the moments between the steps of storage at which a test lets a fault happen: an error, a
// delay, or the end of the process.
//
// The points are part of the code only under the build tag failpoint. Without it Hit is empty and is inlined: nothing is
// called, and the branch on its error is left out.
package failpoint
