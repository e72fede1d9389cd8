package rollout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/longshore/longshore/limits"
)

// upload is a module that waits for a version that names it.
type upload struct {
	digest string
	bytes  int64
}

// ErrDigest says that a module is not the one that it was announced as.
var ErrDigest = errors.New("the module's SHA-256 is another than the one that it is uploaded as")

// Has reports whether a tenant may name a module: whether it is there, and the tenant uploaded it or had it before. What others
// have is nothing that it could find out.
func (s *Store) Has(tenant, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	uploaded := slices.ContainsFunc(s.uploads[tenant], func(u upload) bool { return u.digest == digest })
	return uploaded || s.names(tenant, digest)
}

// names reports whether a version of a tenant names a module.
func (s *Store) names(tenant, digest string) bool {
	for _, v := range s.versions[tenant] {
		if slices.Contains(v.modules(), digest) {
			return true
		}
	}
	return false
}

// Put keeps a module of a tenant until a version names it; one too many makes the tenant's oldest upload go. It returns
// ErrDigest if what r gives is another module, and keeps nothing then.
func (s *Store) Put(tenant, digest string, r io.Reader) error {
	sum := sha256.New()
	var n int64
	staged, err := s.stage(func(w io.Writer) error {
		var err error
		if n, err = io.Copy(io.MultiWriter(w, sum), io.LimitReader(r, limits.GuestModuleBytes+1)); err != nil {
			return err
		}
		if err := limits.Check(limits.NameModule, n, limits.GuestModuleBytes); err != nil {
			return err
		}
		if hex.EncodeToString(sum.Sum(nil)) != digest {
			return ErrDigest
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.place(staged, s.module(digest)); err != nil {
		return err
	}
	waiting := slices.DeleteFunc(s.uploads[tenant], func(u upload) bool { return u.digest == digest })
	if !s.names(tenant, digest) {
		waiting = append(waiting, upload{digest, n})
	}
	total := int64(0)
	for _, u := range waiting {
		total += u.bytes
	}
	for ; total > s.uploadBytes; waiting = waiting[1:] {
		total -= waiting[0].bytes
	}
	s.uploads[tenant] = slices.Clone(waiting)
	return s.collect()
}

// PutIfNew is Put of a module in memory, unless the tenant has it.
func (s *Store) PutIfNew(tenant, digest string, wasm []byte) error {
	if s.Has(tenant, digest) {
		if _, err := s.Read(digest); err == nil {
			return nil
		}
	}
	return s.Put(tenant, digest, bytes.NewReader(wasm))
}

// Read returns a module, if it is whole.
func (s *Store) Read(digest string) ([]byte, error) {
	wasm, err := os.ReadFile(s.module(digest))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s is damaged: its SHA-256 is %x; apply the manifest again", s.module(digest), sum)
	}
	return wasm, nil
}

// collect removes the modules that nothing names.
func (s *Store) collect() error {
	used := map[string]bool{}
	for _, all := range s.versions {
		for _, v := range all {
			for _, digest := range v.modules() {
				used[digest] = true
			}
		}
	}
	for _, all := range s.uploads {
		for _, u := range all {
			used[u.digest] = true
		}
	}
	files, err := os.ReadDir(s.modules())
	if err != nil {
		return err
	}
	for _, f := range files {
		if used[f.Name()] {
			continue
		}
		if err := os.Remove(s.module(f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
