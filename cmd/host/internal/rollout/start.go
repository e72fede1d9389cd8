package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"

	"go.uber.org/zap"

	"github.com/longshore/longshore/internal/config"
)

// Start makes what was deployed before run again. A manifest that is given is deployed if it differs; chosen says that
// somebody named it: one that merely lies there doesn't replace what was applied or rolled back.
func (d *Deployer) Start(ctx context.Context, plan *config.Plan, chosen bool, subject string) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	who := Who{Subject: subject}
	m := manifest{plan: &config.Plan{}}
	var next []*Version
	switch {
	case plan.File == "":
	case !chosen && d.wasApplied():
		d.Logger.Warn("the manifest in this folder is not read: what was applied runs; name it with --manifest to deploy it",
			zap.String("manifest", plan.File))
	default:
		m = manifest{plan: plan, what: whatRun + " " + filepath.Base(plan.File)}
		if m.modules, err = d.readModules(plan); err != nil {
			return err
		}
		entries, err := m.entries()
		if err != nil {
			return err
		}
		next = d.versions(who, m.what, entries)
	}
	_, err = d.replace(ctx, change{who: who, next: next, given: m.find, unkept: true})
	return err
}

// notKept says that what runs is not kept. A host starts on a full disk all the same: that is how it can be emptied.
func (d *Deployer) notKept(err error) {
	d.Logger.Warn("what runs can't be kept on the disk: the next start needs the manifest again", zap.Error(err))
}

// wasApplied reports whether anything was deployed for the whole host but from files beside it, by starting it.
func (d *Deployer) wasApplied() bool {
	for _, v := range d.current {
		if v.Whole && !strings.HasPrefix(v.What, whatRun+" ") && !strings.HasPrefix(v.What, whatDev+" ") {
			return true
		}
	}
	return false
}

// readModules reads the modules of a manifest on this machine, and keeps them. The error is all faults of them.
func (d *Deployer) readModules(plan *config.Plan) (map[string]string, error) {
	modules := map[string]string{}
	var faults config.Faults
	for i := range plan.Consumers {
		c := &plan.Consumers[i]
		wasm, err := c.ReadModule()
		var fault config.Fault
		if errors.As(err, &fault) {
			faults = append(faults, fault)
			continue
		}
		if err != nil {
			return nil, err
		}
		modules[c.Module.Path] = d.take(c.Tenant, wasm)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return modules, nil
}

// take keeps a module of this machine, if the disk has room for it, and returns its digest.
func (d *Deployer) take(tenant string, wasm []byte) (digest string) {
	sum := sha256.Sum256(wasm)
	digest = hex.EncodeToString(sum[:])
	if err := d.Store.PutIfNew(tenant, digest, wasm); err != nil {
		d.notKept(err)
		d.unkept[digest] = wasm
	}
	return digest
}
