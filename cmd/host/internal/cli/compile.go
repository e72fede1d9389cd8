package cli

import (
	"fmt"
	"os"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/runtime"
)

// compileChild is the name of the command that a host starts, for itself, to compile one module.
const compileChild = "compile-child"

// compiler returns the command that compiles one module: this program.
func compiler() ([]string, error) {
	if goruntime.GOOS == "linux" {
		return []string{"/proc/self/exe", compileChild}, nil // it works also after the file was replaced
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, compileChild}, nil
}

// statusError is the exit status of a command that has already said what there is to say.
type statusError int

// Error implements error.
func (statusError) Error() string { return "" }

// compileChildCommand compiles the module on its stdin. People have no use for it.
func (c *command) compileChildCommand() *cobra.Command {
	return &cobra.Command{
		Use: compileChild + " DIR", Short: "Compile one module for a host", Hidden: true, Args: exactArgs("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status := runtime.ServeCompiler(cmd.Context(), args[0], c.In, c.Err); status != 0 {
				return statusError(status)
			}
			return nil
		},
	}
}
