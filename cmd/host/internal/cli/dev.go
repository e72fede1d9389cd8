package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/cmd/host/internal/dev"
	"github.com/longshore/longshore/internal/config"
)

func (c *command) devCommand() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a host, and build and swap consumers whenever their sources change", Args: cobra.NoArgs,
		Long: `Run a host as run does, build the consumers of the manifest, and watch their sources until it is told to stop (Ctrl-C).
What changes is built, and the new version takes over from the next message on; others are left alone. If a build fails, or
a module can't run, the version before keeps running. An edit of the manifest is applied as well.

A folder that build commands name belongs to the consumers whose commands name it; what else lies in the manifest's folder
belongs to all. The modules, and folders named .*, build, dist, target, node_modules and __pycache__, are no sources.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.settings.LogFormat == "" && c.env()["LONGSHORE_LOG_FORMAT"] == "" {
				c.settings.LogFormat = "console"
			}
			return c.dev(cmd.Context(), manifest)
		},
	}
	cmd.Flags().StringVarP(&manifest, "manifest", "m", defaultManifest, "manifest of the consumers")
	c.hostFlags(cmd)
	return cmd
}

// dev runs a host with no consumers, and beside it what gives it those of the manifest.
func (c *command) dev(ctx context.Context, manifest string) error {
	host, err := c.host()
	if err != nil {
		return err
	}
	if manifest == defaultManifest && !exists(manifest) {
		return usage(errors.New("there is no " + manifest + " here: name it with --manifest, or begin with `longshore new consumer NAME`"))
	}
	load := func() (*config.Plan, error) { return config.LoadManifest(manifest, host) }
	plan, err := load()
	if err != nil {
		return missingIsUsage(err)
	}
	talk := dev.NewTalk(c.Err)
	c.Err = talk // so that nobody else writes into a line
	options := dev.Options{
		Plan: plan, Load: load, Talk: talk, Report: c.printError, HostFile: cmp.Or(c.configFile, defaultConfig),
		Ignored: []string{host.Data, host.Keys},
	}
	return c.run(ctx, host, &config.Plan{File: plan.File}, false, func(ctx context.Context, follow app.Follow) error {
		options.Deploy = follow
		return dev.Run(ctx, options)
	})
}
