package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// trialTopic is the topic of a message that is invoked without one.
const trialTopic = "invoke"

// invokeFlags are the flags of invoke.
type invokeFlags struct {
	trial       config.TrialFlags
	contentType string
	metadata    []string
	payload     publishFlags // of publish, as far as they say what the payload is
	runs        int
	figures     bool
}

func (c *command) invokeCommand() *cobra.Command {
	var f invokeFlags
	var file string
	cmd := &cobra.Command{
		Use: "invoke MODULE", Short: "Run a consumer once on one message, without a host, and measure it", Args: exactArgs("MODULE"),
		Long: `Run a consumer's module once on one message, as a host would, but without one: no log, no data folder, no manifest.
It prints how the call ended, in the words that a dead letter would have, what it published (which goes nowhere), what
it used, what it logged, and limits for the manifest that leave room above that.

The limits are a manifest's defaults and ceilings, or those of the host config that --config names. None is looked for.
Exit code: 0 ok, 1 the guest failed, 2 not valid, 4 the module is refused.`,
		Example: `  longshore invoke build/intake.wasm --topic orders --file order.json --content-type application/json
  longshore invoke greeter.wasm --data '{"name":"Ada"}' --fuel 5_000_000 --memory 8MiB
  longshore invoke greeter.wasm --data '{"name":"Ada"}' -n 100`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.payload.dataSet = cmd.Flags().Changed("data"); cmd.Flags().Changed("file") {
				f.payload.files = []string{file}
			}
			if err := f.takeLimits(cmd); err != nil {
				return err
			}
			return c.invoke(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.trial.Topic, "topic", trialTopic, "topic of the message")
	flags.StringVar(&f.trial.Tenant, "tenant", defaultTenant, "tenant of the message, and of what is published")
	flags.StringVar(&f.contentType, "content-type", "", "media type of the payload")
	flags.StringVar(&f.payload.data, "data", "", "the payload (default: read from stdin)")
	flags.StringVar(&file, "file", "", "file that holds the payload, - for stdin")
	flags.StringArrayVar(&f.metadata, "metadata", nil, "key=value; may be repeated")
	flags.StringArrayVar(&f.trial.Publish, "publish", nil, "topic that it may publish to, or a prefix as orders/*; may be repeated (default: all)")
	flags.StringVar(&f.trial.PublishMode, "publish-mode", "", "outbox or immediate: which of what it published a host would keep if it fails (default: outbox, nothing)")
	flags.StringArrayVar(&f.trial.Clients, "client", nil, "name besides default that it may open a client with; may be repeated")
	flags.IntVarP(&f.runs, "count", "n", 1, "run it so many times, each on a clean instance")
	flags.BoolVar(&f.figures, "json", false, "print the figures to stdout, one a line, and the rest to stderr")
	addLimitFlags(cmd)
	return cmd
}

// invoke runs the module and prints what came of it. The error says how it ended, unless that is well.
func (c *command) invoke(ctx context.Context, name string, f invokeFlags) error {
	if f.runs < 1 || f.runs > limits.TrialRuns {
		return usage(fmt.Errorf("-n %d: want 1 to %d", f.runs, limits.TrialRuns))
	}
	host, err := c.namedHost()
	if err != nil {
		return err
	}
	trial, err := f.resolve(host)
	if err != nil {
		return err
	}
	message, err := c.trialMessage(ctx, trial, f)
	if err != nil {
		return err
	}
	wasm, err := readTrialModule(name)
	if err != nil {
		return err
	}
	r, err := invokeModule(ctx, name, wasm, trial, message, f.runs)
	if err != nil {
		return err
	}
	return c.printInvoked(r.report(name, trial, f.trial, host.Ceilings.Guest), f.figures)
}

// namedHost returns the host config that --config names, or the defaults. The environment and the working folder say
// nothing: they are about a host.
func (c *command) namedHost() (*config.Host, error) {
	if c.configFile == "" {
		return config.DefaultHost(), nil
	}
	h, err := config.LoadHost(c.configFile, config.Overrides{})
	return h, missingIsUsage(err)
}

// resolve checks what the flags say of the consumer. Without grants it may publish to all topics.
func (f *invokeFlags) resolve(host *config.Host) (*config.Trial, error) {
	if len(f.trial.Publish) == 0 {
		f.trial.Publish = []string{"*"}
	}
	return config.ParseTrial(f.trial, host)
}

// refusedModule is a module that the host doesn't run.
type refusedModule struct {
	name  string
	cause *runtime.ModuleError
}

// Error implements error.
func (e *refusedModule) Error() string {
	problem, fix := app.Refusal(e.cause)
	return fmt.Sprintf("%s: %s (%s)", e.name, problem, fix)
}

// Unwrap returns the cause.
func (e *refusedModule) Unwrap() error { return e.cause }

// invokeModule compiles a module in memory and runs it.
func invokeModule(
	ctx context.Context, name string, wasm []byte, t *config.Trial, message substrate.Message, runs int,
) (s *trialRuns, err error) {
	engine, err := runtime.New(ctx, runtime.Options{})
	if err != nil {
		return nil, fmt.Errorf("start the runtime: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	module, err := engine.Compile(ctx, name, wasm, t.Guest)
	if ctx.Err() != nil {
		return nil, errStopped
	}
	var refused *runtime.ModuleError
	if errors.As(err, &refused) {
		return nil, &refusedModule{name, refused}
	}
	if err != nil {
		return nil, fmt.Errorf("compile the module: %w", err)
	}
	s = &trialRuns{digest: module.Digest()}
	for range runs {
		var log []trialLine
		r, err := dispatcher.Try(ctx, dispatcher.Trial{
			Guest: module, Message: message, Limits: t.Guest, Publish: t.Publish, Immediate: t.Immediate, Clients: t.Clients,
			Log: func(stream string, line []byte) { log = append(log, trialLine{stream, string(line)}) },
		})
		if err != nil {
			return nil, usage(fmt.Errorf("the message: %w", err))
		}
		if ctx.Err() != nil {
			return nil, errStopped
		}
		s.add(r, log)
	}
	return s, nil
}
