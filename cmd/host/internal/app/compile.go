package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// Compile reads and compiles the module of every consumer of the plan, in its order. What is wrong with modules comes
// back as config.Faults, all of them at once, each at the place in the manifest that names the module. Tenants are not bounded.
func Compile(ctx context.Context, engine *runtime.Engine, plan *config.Plan) ([]*runtime.Module, error) {
	b := newBudgets(&config.Host{})
	var faults config.Faults
	modules := make([]*runtime.Module, len(plan.Consumers))
	for i := range plan.Consumers {
		c := &plan.Consumers[i]
		wasm, err := c.ReadModule()
		if err == nil {
			modules[i], err = compileOne(ctx, engine, c, wasm, b)
		}
		var fault config.Fault
		if errors.As(err, &fault) {
			faults = append(faults, fault)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return modules, nil
}

// compileOne compiles a consumer's module, within the bounds of its tenant. The error is a config.Fault, at the module's place in the manifest, if the module
// is refused.
func compileOne(ctx context.Context, engine *runtime.Engine, c *config.Consumer, wasm []byte, b *budgets) (*runtime.Module, error) {
	module, err := engine.CompileWithin(ctx, c.Name, wasm, c.Guest, instancesOf(c), b.within(c.Tenant))
	if ctx.Err() != nil {
		if module != nil {
			err = module.Close(context.WithoutCancel(ctx))
		}
		return nil, errors.Join(fmt.Errorf("stopped while it compiled consumer %s: %w", c.Name, context.Cause(ctx)), err)
	}
	var refused *runtime.ModuleError
	if errors.As(err, &refused) {
		return nil, c.ModuleFault(Refusal(refused))
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", c.Name, err)
	}
	return module, nil
}

// instancesOf returns what the manifest says of a module's instances, and of what it was made for.
func instancesOf(c *config.Consumer) runtime.Instances {
	i := c.Instances
	return runtime.Instances{
		Reuse: i.Reuse, MaxMessages: i.MaxMessages, MaxAge: i.MaxAge, WarmUp: i.WarmUp, Draft: messaging.Draft(c.Draft),
	}
}

// Refusal says why the host doesn't run a module, and what would be right.
func Refusal(refused *runtime.ModuleError) (problem, fix string) {
	return fmt.Sprintf("the host can't run it (%s): %v", refused.Stage, refused.Err), fixOf(refused)
}

// fixOf says what would be right for a module that was refused.
func fixOf(refused *runtime.ModuleError) string {
	var limit *limits.Error
	if !errors.As(refused, &limit) {
		return "want a core module for GOOS=wasip1 that exports the handler of wasi:messaging"
	}
	keys := map[limits.Name]string{
		limits.NameMemory: "limits.memory", limits.NameTableElements: "limits.table_elements", limits.NameCallDepth: "limits.call_depth",
	}
	if key, ok := keys[limit.Name]; ok {
		return "raise " + key + ", or build a module that needs less"
	}
	if limit.Name == limits.NameCompileTime && limit.Limit < limits.CompileCPU.Milliseconds() {
		return "want a module that compiles faster, or a larger caps.compile_time of its tenant in the host config"
	}
	return "want a module that needs less; this bound is the host's own and can't be raised"
}
