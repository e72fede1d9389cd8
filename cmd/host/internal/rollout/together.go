package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// noted is a version of a tenant that is kept together with others.
type noted struct {
	Tenant string `json:"tenant"`
	Number int    `json:"version"`
}

// together is the file that is there while versions of several tenants are kept.
func (s *Store) together() string { return filepath.Join(s.dir, "together") }

// AddAll is Add of the versions of one deployment, all or none: after a crash in the middle, the next OpenStore takes back
// those that were kept.
func (s *Store) AddAll(all []*Version) error {
	if len(all) > 1 {
		if err := s.noteTogether(all); err != nil {
			return err
		}
	}
	for i, v := range all {
		if err := s.Add(v); err != nil {
			return s.takeBack(all[:i+1], fmt.Errorf("keep version %d of tenant %s: %w", v.Number, v.Tenant, err))
		}
	}
	if len(all) > 1 {
		if err := s.forgetTogether(); err != nil {
			return s.takeBack(all, err)
		}
	}
	return nil
}

func (s *Store) noteTogether(all []*Version) error {
	names := make([]noted, len(all))
	for i, v := range all {
		names[i] = noted{v.Tenant, v.Number}
	}
	return s.write(s.together(), func(w io.Writer) error { return json.NewEncoder(w).Encode(names) })
}

// takeBack removes versions that were, or may have been, kept, because of an error, which it returns.
func (s *Store) takeBack(kept []*Version, because error) error {
	errs := []error{because}
	for _, v := range kept {
		errs = append(errs, s.Remove(v))
	}
	if err := errors.Join(errs[1:]...); err != nil {
		return errors.Join(errs...) // the note stays: the next start tries again
	}
	return errors.Join(because, s.forgetTogether())
}

// forgetTogether says, durably, that versions which were noted are kept, or gone.
func (s *Store) forgetTogether() error {
	if err := os.Remove(s.together()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.sync(s.dir)
}

// finishTogether takes back versions of which a crash let only some be kept.
func (s *Store) finishTogether() error {
	data, err := os.ReadFile(s.together())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var names []noted
	if err == nil {
		err = json.Unmarshal(data, &names)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.together(), err)
	}
	for _, n := range names {
		file := s.version(n.Tenant, n.Number)
		switch err := os.Remove(file); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		if err := s.sync(filepath.Dir(file)); err != nil {
			return err
		}
	}
	return s.forgetTogether()
}
