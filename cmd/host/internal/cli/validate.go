package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/app"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
)

// consumerReport is what validate says about a consumer that could run.
type consumerReport struct {
	Name   string `json:"name"`
	Tenant string `json:"tenant"`
	Topic  string `json:"topic"`
	Group  string `json:"group,omitempty"`
	SHA256 string `json:"sha256"`
}

func (c *command) validateCommand() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use: "validate", Short: "Check host config, manifest and modules; change nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, plan, err := c.load(manifest)
			if err != nil {
				return err
			}
			return c.validate(cmd.Context(), plan)
		},
	}
	manifestFlag(cmd, &manifest)
	return cmd
}

// validate compiles the plan's modules as run would, in memory.
func (c *command) validate(ctx context.Context, plan *config.Plan) (err error) {
	engine, err := runtime.New(ctx, runtime.Options{})
	if err != nil {
		return fmt.Errorf("start the runtime: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close(context.WithoutCancel(ctx))) }()
	modules, err := app.Compile(ctx, engine, plan)
	if err != nil {
		return err
	}
	reports := make([]consumerReport, len(modules))
	r := result{head: []string{"NAME", "TENANT", "TOPIC", "LANE", "SHA256"}}
	for i, m := range modules {
		k := plan.Consumers[i]
		reports[i] = consumerReport{Name: k.Name, Tenant: k.Tenant, Topic: k.Topic, Group: k.Group, SHA256: m.Digest()}
		r.rows = append(r.rows, []string{k.Name, k.Tenant, k.Topic, laneName(k.Group), m.Digest()})
		r.names = append(r.names, k.Name)
	}
	r.value = map[string]any{"consumers": reports}
	c.say("valid: %s", counted(len(modules), "consumer"))
	return c.print(r)
}
