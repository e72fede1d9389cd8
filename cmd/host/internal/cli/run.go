package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/internal/config"
)

// manifestFlag adds --manifest.
func manifestFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "manifest", "m", "", "manifest of the consumers (default: "+defaultManifest+", if it is there)")
}

func (c *command) runCommand() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use: "run", Short: "Run a host until it is told to stop", Args: cobra.NoArgs,
		Long: `Run a host until it is told to stop (SIGINT or SIGTERM). What runs then gets the grace period;
a second signal, a second later or more, ends the host at once. Neither loses a message; the first charges none.
SIGHUP reads the signing keys again, and of the host config the issuers, grants and caps of tenants.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, plan, err := c.load(manifest)
			if err != nil {
				return err
			}
			return c.run(cmd.Context(), host, plan, manifest != "", nil)
		},
	}
	manifestFlag(cmd, &manifest)
	c.hostFlags(cmd)
	return cmd
}

// hostFlags adds the flags of commands that run a host.
func (c *command) hostFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.settings.ListenHTTP, "http", "", "host:port of the data interface")
	flags.StringVar(&c.settings.Keys, "keys", "", "folder of the signing keys")
	flags.StringVar(&c.settings.LogLevel, "log-level", "", "debug, info, warn or error")
	flags.StringVar(&c.settings.LogFormat, "log-format", "", "json or console")
	flags.StringVar(&c.settings.Grace, "grace", "", "what running deliveries get when the host stops, as 30s")
}

// load reads the host config and the manifest. Without a manifest the plan is empty.
func (c *command) load(manifest string) (*config.Host, *config.Plan, error) {
	host, err := c.host()
	if err != nil {
		return nil, nil, err
	}
	if manifest == "" {
		if !exists(defaultManifest) {
			c.say("no %s here: the host takes messages, and runs no consumers but those that were deployed before", defaultManifest)
			return host, &config.Plan{}, nil
		}
		manifest = defaultManifest
	}
	plan, err := config.LoadManifest(manifest, host)
	return host, plan, missingIsUsage(err)
}

// run runs the host, logging to stderr, and what is to run beside it, if anything. chosen says that the manifest was named.
func (c *command) run(
	ctx context.Context, host *config.Host, plan *config.Plan, chosen bool, beside func(context.Context, app.Follow) error,
) error {
	log, err := telemetry.NewLogger(c.Err, host.Log.Level, host.Log.Format)
	if err != nil {
		return usage(err)
	}
	command, err := compiler()
	if err != nil {
		return err
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	return app.Run(ctx, app.Options{
		Host: host, Plan: plan, Chosen: chosen, Logger: log, Build: telemetry.ReadBuild(), Reload: reload, ReadHost: c.host,
		Compiler: command, Beside: beside,
	})
}
