package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

// localModule is a module of a manifest on this machine.
type localModule struct {
	consumer     *config.Consumer
	tenant       string
	path, digest string
}

// readModules returns the digests of the modules of a manifest, and what is wrong with those that can't be read.
func readModules(consumers []config.Consumer) (modules []localModule, faults config.Faults, err error) {
	for i := range consumers {
		c := &consumers[i]
		wasm, err := c.ReadModule()
		var fault config.Fault
		if errors.As(err, &fault) {
			faults = append(faults, fault)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(wasm)
		modules = append(modules, localModule{consumer: c, tenant: c.Tenant, path: c.Module.Path, digest: hex.EncodeToString(sum[:])})
	}
	return modules, faults, nil
}

// upload uploads those modules that the host doesn't have. With a tenant, those of others aren't: the host refuses them.
func (c *command) upload(ctx context.Context, admin *client.Admin, tenant string, modules []localModule) error {
	byTenant := map[string][]string{}
	for _, m := range modules {
		if tenant == "" || m.tenant == tenant {
			byTenant[m.tenant] = append(byTenant[m.tenant], m.digest)
		}
	}
	missing := map[[2]string]bool{}
	for of, digests := range byTenant {
		list, err := admin.MissingModules(ctx, of, digests)
		if err != nil {
			return fmt.Errorf("ask which modules the host has: %w", err)
		}
		for _, digest := range list {
			missing[[2]string{of, digest}] = true
		}
	}
	for _, m := range modules {
		key := [2]string{m.tenant, m.digest}
		if !missing[key] {
			continue
		}
		delete(missing, key)
		wasm, err := m.consumer.ReadModule()
		if err != nil {
			return err
		}
		c.say("uploading %s, %s bytes", m.path, fmt.Sprint(len(wasm)))
		if err := admin.UploadModule(ctx, m.tenant, m.digest, wasm); err != nil {
			return fmt.Errorf("upload %s: %w", m.path, err)
		}
	}
	return nil
}

// allFaults returns the faults that were found here and those that the host found, each place once.
func allFaults(here config.Faults, err error) config.Faults {
	all := here
	var p *wire.Problem
	if !errors.As(err, &p) || p.Code != wire.CodeManifest {
		return all
	}
	for _, e := range p.Errors {
		known := false
		for _, f := range here {
			at := config.Fault{File: f.File, Line: f.Line, Col: f.Col, Path: f.Path}
			known = known || sameEnd(strings.TrimSuffix(at.String(), ": "), e.Location)
		}
		if !known {
			all = append(all, config.Fault{File: e.Location, Problem: e.Message})
		}
	}
	return all
}

// sameEnd reports whether two places are the same but for the folder that the file is in, which the host isn't told.
func sameEnd(a, b string) bool { return a == b || strings.HasSuffix(a, "/"+b) }
