package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

// How long apply and rollback wait for what they deployed, and how often and how long they look at it.
const (
	readyWait  = 30 * time.Second
	readyPoll  = 100 * time.Millisecond
	readyCalm  = 500 * time.Millisecond // that it has to run for
	tokenBytes = 64 << 10
)

// deployFlags are the flags that the commands about deployments share.
type deployFlags struct {
	server, tokenFile string
	tenant            string
	tag               string
	wait              time.Duration
}

func (f *deployFlags) add(cmd *cobra.Command, tenant, about string) {
	flags := cmd.Flags()
	flags.StringVar(&f.tenant, "tenant", tenant, about)
	flags.StringVar(&f.server, "server", "", "URL of a host's admin interface (default: the admin socket of the host here)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the bearer token for --server (default: LONGSHORE_TOKEN)")
}

func (f *deployFlags) addChange(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.tag, "if-match", "", "refuse if something else runs than what has this tag, as diff and history -o json show it")
	flags.DurationVar(&f.wait, "wait", readyWait, "how long to wait until what is deployed runs; 0 doesn't wait")
}

// deployAdmin returns a client of the host that the flags name.
func (c *command) deployAdmin(f *deployFlags) (*client.Admin, error) {
	if f.server == "" {
		return c.admin()
	}
	token := c.env()["LONGSHORE_TOKEN"]
	if f.tokenFile != "" {
		text, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return nil, usage(fmt.Errorf("read the token: %w", err))
		}
		token = string(text)
	}
	if token = strings.TrimSpace(token); token == "" || len(token) > tokenBytes {
		return nil, usage(errors.New("--server needs a bearer token, in the file that --token-file names or in LONGSHORE_TOKEN"))
	}
	if f.tenant == "" {
		return nil, usage(errors.New("--server needs --tenant: a token is for one tenant"))
	}
	a, err := client.NewRemoteAdmin(f.server, token)
	return a, usage(err)
}

func (c *command) applyCommand() *cobra.Command {
	var f deployFlags
	var file string
	cmd := &cobra.Command{
		Use: "apply", Short: "Make a manifest what runs on a host, and wait until it does", Args: cobra.NoArgs,
		Long: `Make a manifest what runs on a host. Everything is checked and compiled before anything is changed. Consumers that are as
they were go on untouched; of others, running deliveries finish on the version that began them.
Modules are uploaded by their SHA-256, those that the host doesn't have. Nothing is built: see longshore build.

With --tenant, the consumers of that tenant are replaced. Without, the manifest is that of the whole host: it replaces all that
was deployed so, and the tenants that it names.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, out, err := c.sendManifest(cmd.Context(), &f, file, false)
			if err != nil {
				return err
			}
			return c.deployed(cmd.Context(), admin, &f, out)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", defaultManifest, "manifest")
	f.add(cmd, "", "only the consumers of this tenant")
	f.addChange(cmd)
	return cmd
}

func (c *command) diffCommand() *cobra.Command {
	var f deployFlags
	var file string
	cmd := &cobra.Command{
		Use: "diff", Short: "Show what apply would change; check everything, change nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, out, err := c.sendManifest(cmd.Context(), &f, file, true)
			if err != nil {
				return err
			}
			c.say("%s; what runs has the tag %s", changed(out.Changes, "would change"), out.Tag)
			return c.print(changesResult(out))
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", defaultManifest, "manifest")
	f.add(cmd, "", "only the consumers of this tenant")
	return cmd
}

// sendManifest uploads the modules of a manifest that the host doesn't have, and asks for it to be deployed.
func (c *command) sendManifest(ctx context.Context, f *deployFlags, file string, dryRun bool) (*client.Admin, *wire.Deployed, error) {
	admin, err := c.deployAdmin(f)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, missingIsUsage(fmt.Errorf("read the manifest: %w", err))
	}
	consumers, err := config.Modules(file, text)
	if err != nil {
		return nil, nil, err
	}
	a := wire.Apply{File: file, Manifest: string(text), Modules: map[string]string{}, DryRun: dryRun}
	if len(file) > 255 {
		a.File = defaultManifest
	}
	modules, faults, err := readModules(consumers)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range modules {
		a.Modules[m.path] = m.digest
	}
	a.DryRun = a.DryRun || len(faults) > 0
	if err := c.upload(ctx, admin, f.tenant, modules); err != nil {
		return nil, nil, err
	}
	out, err := admin.Apply(ctx, f.tenant, f.tag, a)
	if all := allFaults(faults, err); len(all) > 0 {
		return nil, nil, all
	}
	if err != nil {
		return nil, nil, fmt.Errorf("deploy %s: %w", file, err)
	}
	return admin, &out, nil
}

// deployed says what was deployed, and waits until it runs.
func (c *command) deployed(ctx context.Context, admin *client.Admin, f *deployFlags, out *wire.Deployed) error {
	if err := c.print(changesResult(out)); err != nil {
		return err
	}
	c.say("%s", changed(out.Changes, "changed"))
	for _, v := range out.Versions {
		c.say("tenant %s runs version %d, %.12s", v.Tenant, v.Version, v.Digest)
	}
	if f.wait <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	return waitRunning(ctx, admin, out)
}

// waitRunning returns once what was deployed has run for a moment. It fails if one of the consumers doesn't go on by itself.
func waitRunning(ctx context.Context, admin *client.Admin, out *wire.Deployed) error {
	waits := map[[2]string]bool{}
	for _, ch := range out.Changes {
		waits[[2]string{ch.Tenant, ch.Consumer}] = ch.Kind != wire.ChangeRemoved
	}
	var since time.Time
	for {
		all, err := admin.Consumers(ctx)
		if err != nil {
			return fmt.Errorf("wait until what was deployed runs: %w", err)
		}
		running := true
		for _, one := range all {
			if !waits[[2]string{one.Tenant, one.Name}] {
				continue
			}
			if k := one.Canary; k != nil && k.State == "paused" {
				one.State, one.Reason = k.State, "its canary is: "+k.Reason
			}
			switch one.State {
			case "paused", "unhealthy", "stopped":
				return fmt.Errorf("consumer %s of tenant %s is %s: %s; `longshore rollback --tenant %s` goes back",
					one.Name, one.Tenant, one.State, one.Reason, one.Tenant)
			case "running":
			default:
				running = false
			}
		}
		switch {
		case !running:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= readyCalm:
			return nil
		}
		select {
		case <-time.After(readyPoll):
		case <-ctx.Done():
			return fmt.Errorf("what was deployed doesn't run yet: %w", ctx.Err())
		}
	}
}

func (c *command) historyCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "history", Short: "List the versions of a tenant's consumers, newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			list, err := admin.Deployments(cmd.Context(), f.tenant)
			if err != nil {
				return fmt.Errorf("list the versions: %w", err)
			}
			return c.print(historyResult(list))
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	return cmd
}

// listed is a list of versions as programs get it: with the tag.
func listed(list wire.VersionList) any {
	return struct {
		Tag string `json:"tag"`
		wire.VersionList
	}{list.Tag, list}
}

func historyResult(list wire.VersionList) result {
	r := result{value: listed(list), head: []string{"VERSION", "RUNS", "AT", "BY", "WHAT", "DIGEST", "CONSUMERS"}}
	for _, v := range list.Versions {
		runs := ""
		if v.Runs {
			runs = "yes"
		}
		names := make([]string, len(v.Consumers))
		for i, one := range v.Consumers {
			names[i] = one.Name
		}
		r.rows = append(r.rows, []string{
			strconv.Itoa(v.Version), runs, when(v.At, time.DateTime), v.By, v.What, short(v.Digest), strings.Join(names, ","),
		})
		r.names = append(r.names, strconv.Itoa(v.Version))
	}
	return r
}

func (c *command) rollbackCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "rollback [VERSION]", Short: "Make an earlier version run again: the last other one, if none is named", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r wire.Rollback
			if len(args) == 1 {
				var err error
				if r.Version, err = strconv.Atoi(args[0]); err != nil || r.Version < 1 {
					return usage(fmt.Errorf("%.40q is no version: want a number that `longshore history` shows", args[0]))
				}
			}
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			out, err := admin.Rollback(cmd.Context(), f.tenant, f.tag, r)
			if err != nil {
				return fmt.Errorf("roll back: %w", err)
			}
			return c.deployed(cmd.Context(), admin, &f, &out)
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	f.addChange(cmd)
	return cmd
}

func (c *command) promoteCommand() *cobra.Command {
	var f deployFlags
	cmd := &cobra.Command{
		Use: "promote [CONSUMER]", Short: "Give the canary of a consumer, or all canaries of a tenant, all messages", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			admin, err := c.deployAdmin(&f)
			if err != nil {
				return err
			}
			out, err := admin.Promote(cmd.Context(), f.tenant, f.tag, wire.Promote{Consumer: strings.Join(args, "")})
			if err != nil {
				return fmt.Errorf("promote: %w", err)
			}
			return c.deployed(cmd.Context(), admin, &f, &out)
		},
	}
	f.add(cmd, defaultTenant, "tenant")
	f.addChange(cmd)
	return cmd
}

// changed counts changes.
func changed(all []wire.Change, what string) string {
	if len(all) == 0 {
		return "nothing " + what
	}
	return counted(len(all), "consumer") + " " + what
}

func changesResult(out *wire.Deployed) result {
	r := result{value: struct {
		Tag string `json:"tag"`
		*wire.Deployed
	}{out.Tag, out}, head: []string{"TENANT", "CONSUMER", "CHANGE", "KEY", "BEFORE", "AFTER"}}
	for _, ch := range out.Changes {
		r.names = append(r.names, ch.Consumer)
		row := func(key, before, after string) {
			r.rows = append(r.rows, []string{ch.Tenant, ch.Consumer, ch.Kind, key, before, after})
		}
		if ch.ModuleBefore != ch.ModuleAfter {
			row("module", short(ch.ModuleBefore), short(ch.ModuleAfter))
		}
		for _, field := range ch.Fields {
			row(field.Path, field.Before, field.After)
		}
	}
	return r
}

// short is enough of a digest to tell it from others.
func short(digest string) string { return digest[:min(12, len(digest))] }
