package dev

import (
	"path/filepath"
	"slices"
	"strings"
)

// ignoredFolder reports whether nothing below a folder of this name is a source: what tools keep for themselves, what package
// managers install, and what compilers write.
func ignoredFolder(name string) bool {
	switch name {
	case "node_modules", "target", "build", "dist", "__pycache__":
		return true
	}
	return strings.HasPrefix(name, ".")
}

// ignoredFile reports whether a file of this name is what an editor or a system leaves beside a source.
func ignoredFile(name string) bool {
	switch filepath.Ext(name) {
	case ".swp", ".swo", ".swx", ".tmp":
		return true
	}
	backup := strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#")
	return backup || name == "4913" || name == ".DS_Store" // vim tries with 4913 whether it may write
}

// within reports whether an absolute path is a folder, or something in it.
func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, string(filepath.Separator))+string(filepath.Separator))
}

// inIgnored reports whether a path below a folder leads through one that is ignored.
func inIgnored(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(strings.Split(relative, string(filepath.Separator)), func(part string) bool {
		return part != "." && part != ".." && ignoredFolder(part)
	})
}
