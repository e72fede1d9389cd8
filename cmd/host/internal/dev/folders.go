package dev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/longshore/longshore/internal/config"
)

// betweenWords are the characters between what may be names of files in a word of a command: a word may be a flag with a
// value, or the script of a shell.
const betweenWords = " \t\n;&|<>()'\"`=,:"

// namedFolders returns the folders that a consumer's build command names, or names a file of, as absolute paths: below the
// manifest's folder, or beside it. Of two that lie in each other it is the inner one. There are none if the command names
// only the manifest's folder itself, or nothing that is there.
func namedFolders(k config.Consumer) []string {
	var found []string
	for _, word := range k.Build {
		for _, name := range strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(betweenWords, r) }) {
			if folder := folderOf(k.Module, strings.TrimSuffix(name, "/..."), found); folder != "" && !slices.Contains(found, folder) {
				found = append(found, folder)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(found), func(outer string) bool {
		return slices.ContainsFunc(found, func(inner string) bool { return inner != outer && within(outer, inner) })
	})
}

// folderOf returns the folder that a name means, or that holds the file that it means: in the manifest's folder, or in one that
// the command named before, as with `go -C`. It is "" if there is none.
func folderOf(m config.Module, name string, before []string) string {
	if name == "" || filepath.IsAbs(name) {
		return ""
	}
	for _, base := range append([]string{m.Dir}, before...) {
		path := filepath.Join(base, name)
		if path == m.File() {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if !info.IsDir() {
			path = filepath.Dir(path)
		}
		if within(path, m.Dir) || inIgnored(m.Dir, path) {
			return "" // the whole folder, or no source
		}
		return path
	}
	return ""
}

// sources says which files belong to which consumers of a plan.
type sources struct {
	root      string // the manifest's folder
	consumers []config.Consumer
	folders   [][]string // that the consumer's command names
}

func newSources(root string, plan *config.Plan) sources {
	s := sources{root: root, consumers: plan.Consumers}
	for _, k := range plan.Consumers {
		s.folders = append(s.folders, namedFolders(k))
	}
	return s
}

// trees returns the folders to watch: the manifest's, and those beside it that commands name.
func (s sources) trees() []string {
	trees := []string{s.root}
	for _, folders := range s.folders {
		for _, f := range folders {
			if !slices.ContainsFunc(trees, func(t string) bool { return within(t, f) }) {
				trees = append(trees, f)
			}
		}
	}
	return trees
}

// belongs reports whether a file is a source of the consumer with this index, which is built.
func (s sources) belongs(file string, index int) bool {
	holds := func(folder string) bool { return within(folder, file) }
	if slices.ContainsFunc(s.folders[index], holds) {
		return true
	}
	named := slices.ContainsFunc(s.folders, func(folders []string) bool { return slices.ContainsFunc(folders, holds) })
	return within(s.root, file) && (!named || len(s.folders[index]) == 0)
}
