package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// stamp says what a file held when it was looked at.
type stamp struct {
	size     int64
	modified time.Time
	sum      [sha256.Size]byte // of the content; zero for a file above limits.SourceBytes
	looked   time.Time
}

// sameTime is how close together changes of a file may be and have the same time of modification, on the coarsest of file systems.
const sameTime = 2 * time.Second

// files are the stamps of files by their absolute paths.
type files map[string]stamp

// changed returns the paths whose files differ between a and b, or are in one only, sorted.
func changed(a, b files) []string {
	var paths []string
	for path, now := range b {
		if before, there := a[path]; !there || before.size != now.size || before.sum != now.sum || now.large() && !before.modified.Equal(now.modified) {
			paths = append(paths, path)
		}
	}
	for path := range a {
		if _, there := b[path]; !there {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

func (s stamp) large() bool { return s.size > limits.SourceBytes }

// scanner looks at the files of folders.
type scanner struct {
	ignored    map[string]bool     // absolute paths of files and folders that are no sources
	enter      func(folder string) // is told of each folder before it is looked at
	maxFolders int
	maxFiles   int

	found   files
	before  files
	folders int
}

// scan looks at all files in trees of folders but those that are ignored. It reads those alone that may differ from before.
// Links to folders are not followed.
func (s *scanner) scan(ctx context.Context, trees []string, before files) (files, error) {
	s.found, s.before, s.folders = files{}, before, 0
	for _, tree := range trees {
		if err := s.folder(ctx, tree); err != nil {
			return nil, err
		}
	}
	return s.found, nil
}

// tooManyError says that there is more below a manifest than is watched.
type tooManyError struct {
	what, at string
	bound    int
}

// Error implements error.
func (e tooManyError) Error() string {
	return fmt.Sprintf("there are more than %d %s to watch, at %s: give the manifest a folder with the sources of its consumers alone",
		e.bound, e.what, e.at)
}

func (s *scanner) folder(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.folders++; s.folders > s.maxFolders {
		return tooManyError{"folders", path, s.maxFolders}
	}
	s.enter(path)
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // it is gone by now, or nobody's source
	}
	if err != nil {
		return fmt.Errorf("look at the sources: %w", err)
	}
	for _, e := range entries {
		inner := filepath.Join(path, e.Name())
		switch {
		case s.ignored[inner]:
		case e.IsDir() && !ignoredFolder(e.Name()):
			err = s.folder(ctx, inner)
		case !e.IsDir() && !ignoredFile(e.Name()):
			err = s.file(inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) file(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is gone by now, or no source
	}
	if len(s.found) >= s.maxFiles {
		return tooManyError{"files", path, s.maxFiles}
	}
	now := stamp{size: info.Size(), modified: info.ModTime(), looked: time.Now()}
	before, there := s.before[path]
	same := there && before.size == now.size && before.modified.Equal(now.modified)
	switch {
	case same && before.looked.Sub(before.modified) > sameTime:
		now = before
	case !now.large():
		now.sum = contentOf(path)
	}
	s.found[path] = now
	return nil
}

// contentOf returns the digest of a file's content, or of as much as can be read.
func contentOf(path string) (sum [sha256.Size]byte) {
	file, err := os.Open(path)
	if err != nil {
		return sum
	}
	defer func() { _ = file.Close() }() // opened to read only
	digest := sha256.New()
	_, _ = io.Copy(digest, io.LimitReader(file, limits.SourceBytes+1))
	return [sha256.Size]byte(digest.Sum(nil))
}
