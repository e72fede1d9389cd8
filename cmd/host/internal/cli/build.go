package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/build"
	"github.com/longshore/longshore/internal/config"
)

// builtReport is what build says about a consumer.
type builtReport struct {
	Name   string `json:"name"`
	Module string `json:"module"`
	Bytes  int64  `json:"bytes"`
}

func (c *command) buildCommand() *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use: "build [CONSUMER...]", Short: "Build the consumers of a manifest, by its build commands",
		Long: `Run the build commands of a manifest's consumers, or of those that are named, in the manifest's folder and without a
shell. What a compiler says goes to stderr as it says it. The first one that fails ends it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			plan, err := c.manifest(manifest)
			if err != nil {
				return err
			}
			chosen, err := choose(plan, args)
			if err != nil {
				return err
			}
			return c.build(cmd.Context(), chosen)
		},
	}
	manifestFlag(cmd, &manifest)
	return cmd
}

// manifest reads a manifest that must be there.
func (c *command) manifest(file string) (*config.Plan, error) {
	host, err := c.host()
	if err != nil {
		return nil, err
	}
	if file == "" {
		file = defaultManifest
	}
	plan, err := config.LoadManifest(file, host)
	return plan, missingIsUsage(err)
}

// choose returns the consumers of these names, or all.
func choose(plan *config.Plan, names []string) ([]config.Consumer, error) {
	if len(names) == 0 {
		return plan.Consumers, nil
	}
	var chosen []config.Consumer
	for _, name := range names {
		i := slices.IndexFunc(plan.Consumers, func(c config.Consumer) bool { return c.Name == name })
		if i < 0 {
			return nil, usage(fmt.Errorf("%s has no consumer %.80q", plan.File, name))
		}
		chosen = append(chosen, plan.Consumers[i])
	}
	return chosen, nil
}

// build runs the build commands, each once, and reports the modules.
func (c *command) build(ctx context.Context, consumers []config.Consumer) error {
	r := result{head: []string{"NAME", "BYTES", "MODULE"}}
	var reports []builtReport
	var done [][]string
	for _, k := range consumers {
		again := func(other []string) bool { return slices.Equal(other, k.Build) }
		if k.Build != nil && !slices.ContainsFunc(done, again) {
			c.say("%s: building", k.Name)
			if err := build.Run(ctx, k.Module.Dir, k.Build, c.Err); err != nil {
				return fmt.Errorf("consumer %s: %w", k.Name, err)
			}
			done = append(done, k.Build)
		}
		info, err := os.Stat(k.Module.File())
		if errors.Is(err, fs.ErrNotExist) && k.Build == nil {
			return usage(fmt.Errorf("consumer %s: there is no %s, and no build command that makes it", k.Name, k.Module.Path))
		}
		if err != nil {
			return fmt.Errorf("consumer %s: the build command made no %s: %w", k.Name, k.Module.Path, err)
		}
		reports = append(reports, builtReport{Name: k.Name, Module: k.Module.Path, Bytes: info.Size()})
		r.rows = append(r.rows, []string{k.Name, fmt.Sprint(info.Size()), k.Module.Path})
		r.names = append(r.names, k.Name)
	}
	r.value = map[string]any{"consumers": reports}
	return c.print(r)
}
