package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrRuns says that consumers of a tenant run, so that it can't be deleted.
var ErrRuns = errors.New("consumers of the tenant run: deploy a manifest without them first")

// Delete has a tenant removed of which nothing runs: remove is given what deletes all its versions, with the modules that no
// other tenant has. Nothing is deployed meanwhile.
func (d *Deployer) Delete(ctx context.Context, tenant string, remove func(versions func() error) error) error {
	unlock, err := d.lockChange(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	var running []string
	for n := range d.running {
		if n.tenant == tenant {
			running = append(running, n.name)
		}
	}
	if len(running) > 0 {
		return fmt.Errorf("%w (%s)", ErrRuns, strings.Join(running, ", "))
	}
	return remove(func() error { return d.forgetTenant(tenant) })
}

// Forget deletes the versions of a tenant that has left the log.
func (d *Deployer) Forget(ctx context.Context, tenant string) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return d.forgetTenant(tenant)
}

func (d *Deployer) forgetTenant(tenant string) error {
	d.mu.Lock()
	delete(d.current, tenant)
	d.mu.Unlock()
	return d.Store.Forget(tenant)
}

// Forget deletes all versions of a tenant and what it uploaded, and the modules that nobody else names: after a crash all of the
// versions are there or none is.
func (s *Store) Forget(tenant string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.versions, tenant)
	delete(s.uploads, tenant)
	gone := filepath.Join(s.dir, "new-gone-"+tenant)
	err := os.Rename(filepath.Join(s.tenants(), tenant), gone)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the deployments of tenant %s: %w", tenant, err)
	}
	return errors.Join(s.sync(s.tenants()), os.RemoveAll(gone), s.collect())
}
