package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
)

// codeCache is a folder of compiled code, which a compiler fills and from which the engine loads.
//
//	new-…/                 where a compiler works
//	wazero-…/<name>        code, as the engine stores and names it
//	notes/<key>            sha256 of the code, two spaces, its path from the folder
//
// A key is a digest of the metered module, and so of the module and how it was rewritten; of the engine's version and of
// the features of the processor. Code counts only while its note is true: nothing else is loaded, because what is loaded
// is executed.
type codeCache struct {
	dir     string
	engine  string // stands for the engine's version and the processor
	compile compiler
	turn    chan struct{} // holds one token: one compiler at a time
}

// compiler compiles a metered module into the folder dir, within so much time of a processor if that isn't 0. It returns a
// *hostFault for what isn't the module's fault.
type compiler func(ctx context.Context, dir string, metered []byte, cpu time.Duration) error

// hostFault is a failure to compile or to initialise that isn't the module's fault.
type hostFault struct{ err error }

// Error implements error.
func (e *hostFault) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *hostFault) Unwrap() error { return e.err }

// openCodeCache opens a folder, or makes it. It removes what a process left unfinished, and the oldest code beyond
// limits.CodeCacheBytes. No other process may use the folder.
func openCodeCache(ctx context.Context, dir string, c compiler) (*codeCache, error) {
	cache := &codeCache{dir: dir, compile: c, turn: make(chan struct{}, 1)}
	if err := os.MkdirAll(cache.notes(), 0o700); err != nil {
		return nil, err
	}
	if err := checkPrivate(dir); err != nil {
		return nil, err
	}
	var err error
	if cache.engine, err = cache.identifyEngine(ctx); err != nil {
		return nil, fmt.Errorf("identify the engine: %w", err)
	}
	return cache, cache.tidy()
}

// checkPrivate refuses a folder that others may write to.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 || !ownedByUs(info) {
		return fmt.Errorf("others may write to %s (%v), and what is in it is executed: remove it, or make it yours with mode 0700",
			dir, info.Mode())
	}
	return nil
}

func (c *codeCache) notes() string { return filepath.Join(c.dir, "notes") }

// probe is a module of one empty function.
const probe = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b"

// identifyEngine compiles a module that is always the same. The name that the engine gives its code depends on the engine
// alone: its version, and the processor.
func (c *codeCache) identifyEngine(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp(c.dir, "new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := compileInto(ctx, dir, []byte(probe)); err != nil {
		return "", err
	}
	return onlyFile(dir)
}

// key names the code of a metered module.
func (c *codeCache) key(metered []byte) string {
	h := sha256.New()
	_, _ = io.WriteString(h, c.engine+"\x00")
	_, _ = h.Write(metered)
	return hex.EncodeToString(h.Sum(nil))
}

// ready makes sure that the code of a metered module is there and whole. Where the compiler refuses the module, the error
// is its own; a *hostFault is something else.
func (c *codeCache) ready(ctx context.Context, metered []byte, cpu time.Duration) error {
	key := c.key(metered)
	if c.whole(key) {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return &hostFault{context.Cause(ctx)}
	}
	defer func() { <-c.turn }()
	if c.whole(key) {
		return nil
	}
	return c.fill(ctx, key, metered, cpu)
}

// whole reports whether there is a note for key that is true, and marks it as used.
func (c *codeCache) whole(key string) bool {
	note := filepath.Join(c.notes(), key)
	text, err := os.ReadFile(note)
	if err != nil {
		return false
	}
	digest, name, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), "  ")
	if !ok || !filepath.IsLocal(name) {
		return false
	}
	actual, err := fileDigest(filepath.Join(c.dir, name))
	if err != nil || actual != digest {
		return false
	}
	now := time.Now()
	_ = os.Chtimes(note, now, now) // only the order in which code goes depends on it
	return true
}

// fill compiles a module and notes its code.
func (c *codeCache) fill(ctx context.Context, key string, metered []byte, cpu time.Duration) error {
	dir, err := os.MkdirTemp(c.dir, "new-")
	if err != nil {
		return &hostFault{err}
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := c.compile(ctx, dir, metered, cpu); err != nil {
		return err
	}
	if err := c.keep(key, dir); err != nil {
		return &hostFault{fmt.Errorf("keep the compiled code: %w", err)}
	}
	if err := c.tidy(); err != nil {
		return &hostFault{fmt.Errorf("remove old compiled code: %w", err)}
	}
	return nil
}

// keep moves the one file in dir to its place and writes its note.
func (c *codeCache) keep(key, dir string) error {
	name, err := onlyFile(dir)
	if err != nil {
		return err
	}
	digest, err := fileDigest(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(c.dir, filepath.Dir(name)), 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(c.dir, name)); err != nil {
		return err
	}
	// A note that is torn by a crash is not true, and a lost one costs another compilation.
	return os.WriteFile(filepath.Join(c.notes(), key), []byte(digest+"  "+name+"\n"), 0o600)
}

// onlyFile returns the path, from dir, of the only file in dir's folders.
func onlyFile(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("the compiler left %d files, not 1", len(files))
	}
	return filepath.Rel(dir, files[0])
}

func fileDigest(name string) (string, error) {
	f, err := os.Open(name) //nolint:gosec // within the folder
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it is only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// note is a note as tidy sees it.
type note struct {
	path string // of the note
	code string // of its code; "" if the note makes no sense
	used time.Time
	size int64 // of the code
}

// tidy removes what nobody finished, what no note names, and the code that was used longest ago while there is too much.
func (c *codeCache) tidy() error {
	notes, err := c.allNotes()
	if err != nil {
		return err
	}
	slices.SortFunc(notes, func(a, b note) int { return b.used.Compare(a.used) })
	kept := map[string]bool{}
	var errs []error
	var total int64
	for _, n := range notes {
		if total += n.size; n.code == "" || total > limits.CodeCacheBytes {
			errs = append(errs, os.Remove(n.path))
			continue
		}
		kept[n.code] = true
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "wazero-*", "*"))
	errs = append(errs, err)
	for _, f := range files {
		if !kept[f] {
			errs = append(errs, os.Remove(f))
		}
	}
	unfinished, err := filepath.Glob(filepath.Join(c.dir, "new-*"))
	errs = append(errs, err)
	for _, dir := range unfinished {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

func (c *codeCache) allNotes() ([]note, error) {
	entries, err := os.ReadDir(c.notes())
	if err != nil {
		return nil, err
	}
	notes := make([]note, 0, len(entries))
	for _, e := range entries {
		n := note{path: filepath.Join(c.notes(), e.Name())}
		text, err := os.ReadFile(n.path)
		if err != nil {
			return nil, err
		}
		_, name, ok := strings.Cut(strings.TrimSuffix(string(text), "\n"), "  ")
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		n.used = info.ModTime()
		if ok && filepath.IsLocal(name) {
			n.code = filepath.Join(c.dir, name)
			code, err := os.Stat(n.code) //nolint:gosec // within the folder
			switch {
			case err == nil:
				n.size = code.Size()
			case errors.Is(err, fs.ErrNotExist):
				n.code = ""
			default:
				return nil, err
			}
		}
		notes = append(notes, n)
	}
	return notes, nil
}
