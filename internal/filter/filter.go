// Package filter decides by an expression whether a consumer takes a message.
//
// The language is that of github.com/expr-lang/expr without all that loops, allocates more than it is given, or defines
// names: comparisons, and, or, not, in, contains, startsWith, endsWith, matches with a constant pattern, arithmetic, and the
// functions len, lower, upper, trim, int, float and string. So an expression of at most limits.FilterBytes and
// limits.FilterNodes takes a bounded time and memory on whatever message.
//
// An expression sees:
//
//	topic         text
//	content_type  text, "" if there is none
//	metadata      texts by key: metadata["region"]; "" for a key that is not there, the first of several
//	subject       text, who published it: "" if that isn't verified
//	claims        texts by key, of that producer; "" for a claim that is not there
package filter

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/longshore/longshore/limits"
)

// Message is what an expression sees of a message.
type Message struct {
	Topic       string            `expr:"topic"`
	ContentType string            `expr:"content_type"`
	Metadata    map[string]string `expr:"metadata"`
	Subject     string            `expr:"subject"`
	Claims      map[string]string `expr:"claims"`
}

// Filter is a compiled expression. It is safe for concurrent use.
type Filter struct {
	program *vm.Program
}

// Compile reads an expression. The error says what is wrong with it, and quotes no more of it than a word.
func Compile(source string) (*Filter, error) {
	if len(source) > limits.FilterBytes {
		return nil, fmt.Errorf("the expression has %d bytes: want at most %d", len(source), limits.FilterBytes)
	}
	if err := check(source); err != nil {
		return nil, err
	}
	options := []expr.Option{expr.Env(Message{}), expr.AsBool(), expr.MaxNodes(limits.FilterNodes), expr.DisableAllBuiltins()}
	for _, name := range functions() {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(source, options...)
	if err != nil {
		return nil, brief(err)
	}
	return &Filter{program: program}, nil
}

// Match reports whether the message is one that the expression takes. An error says that the expression can't be computed
// for this message: it divides by zero, or takes a text for a number.
func (f *Filter) Match(m Message) (bool, error) {
	machine := vm.VM{MemoryBudget: limits.FilterNodes}
	out, err := machine.Run(f.program, m)
	if err != nil {
		return false, brief(err)
	}
	takes, ok := out.(bool)
	if !ok {
		return false, errors.New("the expression is neither true nor false")
	}
	return takes, nil
}
