//go:build !wasip1

package longshore

// runtimeGenerator is what only a module has.
var runtimeGenerator *generator

func freshenRandomness() {}
