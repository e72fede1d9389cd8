package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// format is the content of the file that says how the folder is laid out.
const format = "longshore deployments 1\n"

// Store is the folder of versions and modules. It is safe for concurrent use; no other process may use the folder.
type Store struct {
	dir         string
	uploadBytes int64                  // that modules of one tenant which no version names may have
	sync        func(dir string) error // syncFolder

	mu       sync.Mutex
	versions map[string][]*Version // by tenant, oldest first
	uploads  map[string][]upload   // of modules that no version named when they came, by tenant, oldest first
}

// OpenStore opens a folder, or makes it. It removes what was left unfinished and modules that no version names.
func OpenStore(dir string) (*Store, error) {
	s := &Store{dir: dir, uploadBytes: limits.UploadBytes, sync: syncFolder, versions: map[string][]*Version{}, uploads: map[string][]upload{}}
	for _, folder := range []string{s.modules(), s.tenants()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	if err := s.checkFormat(); err != nil {
		return nil, err
	}
	if err := s.removeUnfinished(); err != nil {
		return nil, err
	}
	if err := s.finishTogether(); err != nil {
		return nil, err
	}
	if err := s.readAll(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.collect()
}

func (s *Store) modules() string { return filepath.Join(s.dir, "modules") }
func (s *Store) tenants() string { return filepath.Join(s.dir, "tenants") }

func (s *Store) module(digest string) string { return filepath.Join(s.modules(), digest) }

func (s *Store) version(tenant string, number int) string {
	return filepath.Join(s.tenants(), tenant, fmt.Sprintf("%010d", number))
}

func (s *Store) checkFormat() error {
	name := filepath.Join(s.dir, "format")
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.write(name, func(w io.Writer) error { _, err := io.WriteString(w, format); return err })
	case err != nil:
		return err
	case string(text) != format:
		return fmt.Errorf("%s says %.60q, and this program knows %q: it is of another version of longshore", name, text, format)
	}
	return nil
}

func (s *Store) removeUnfinished() error {
	left, err := filepath.Glob(filepath.Join(s.dir, "new-*"))
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads the versions of all tenants.
func (s *Store) readAll() error {
	tenants, err := os.ReadDir(s.tenants())
	if err != nil {
		return err
	}
	for _, t := range tenants {
		if substrate.ValidTenant(t.Name()) != nil {
			continue
		}
		files, err := os.ReadDir(filepath.Join(s.tenants(), t.Name())) // sorted, and numbers have ten digits
		if err != nil {
			return err
		}
		for _, f := range files {
			number, err := strconv.Atoi(f.Name())
			if err != nil {
				continue
			}
			name := s.version(t.Name(), number)
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			v, err := decodeVersion(data, t.Name(), number)
			if err != nil {
				return fmt.Errorf("%s is damaged: %w; remove it, and the version before it runs", name, err)
			}
			s.versions[t.Name()] = append(s.versions[t.Name()], v)
		}
	}
	return nil
}

// Tenants returns the tenants that have versions, in order.
func (s *Store) Tenants() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for tenant := range s.versions {
		out = append(out, tenant)
	}
	slices.Sort(out)
	return out
}

// Versions returns the versions that are kept of a tenant, oldest first.
func (s *Store) Versions(tenant string) []*Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.versions[tenant])
}

// Current returns what runs of a tenant; nil if nothing ever was deployed.
func (s *Store) Current(tenant string) *Version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current(tenant)
}

func (s *Store) current(tenant string) *Version {
	if all := s.versions[tenant]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// Add keeps a version, durably, and drops the oldest beyond limits.PlanVersions with the modules that only they named. After an
// error its file may be there all the same, and run at the next start: Remove takes it away.
func (s *Store) Add(v *Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(s.version(v.Tenant, v.Number)), 0o700); err != nil {
		return err
	}
	if err := s.sync(s.tenants()); err != nil {
		return err
	}
	err := s.write(s.version(v.Tenant, v.Number), func(w io.Writer) error { return json.NewEncoder(w).Encode(v) })
	if err != nil {
		return err
	}
	all := append(s.versions[v.Tenant], v)
	for len(all) > limits.PlanVersions {
		if err := os.Remove(s.version(v.Tenant, all[0].Number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = all[1:]
	}
	s.versions[v.Tenant] = slices.Clone(all)
	s.uploads[v.Tenant] = slices.DeleteFunc(s.uploads[v.Tenant], func(u upload) bool { return s.names(v.Tenant, u.digest) })
	return s.collect()
}

// Remove takes the newest version of a tenant away, durably, or what an Add that failed has left of it: it came to nothing.
func (s *Store) Remove(v *Version) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.current(v.Tenant)
	if now == v {
		s.versions[v.Tenant] = s.versions[v.Tenant][:len(s.versions[v.Tenant])-1]
		if len(s.versions[v.Tenant]) == 0 {
			delete(s.versions, v.Tenant)
		}
	} else if now.number() >= v.Number {
		return nil
	}
	name := s.version(v.Tenant, v.Number)
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) && now != v {
		return nil
	}
	if err == nil {
		err = s.sync(filepath.Dir(name)) // or it might run after a power cut
	}
	if err != nil {
		return fmt.Errorf("take back version %d of tenant %s, which may run after the next start: %w", v.Number, v.Tenant, err)
	}
	return nil
}

// write makes a file with what fill writes, durably. After an error its place is as it was, or has the file, not durably.
func (s *Store) write(name string, fill func(io.Writer) error) error {
	staged, err := s.stage(fill)
	if err != nil {
		return err
	}
	return s.place(staged, name)
}

// stage makes a file beside all places.
func (s *Store) stage(fill func(io.Writer) error) (name string, err error) {
	f, err := os.CreateTemp(s.dir, "new-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(f), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// place moves a staged file to its place, durably. After an error it may be there.
func (s *Store) place(staged, name string) error {
	if err := os.Rename(staged, name); err != nil {
		return errors.Join(err, os.Remove(staged))
	}
	return s.sync(filepath.Dir(name))
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
