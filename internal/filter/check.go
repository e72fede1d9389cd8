package filter

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"github.com/longshore/longshore/limits"
)

// functions are those that an expression may call. None of them takes longer than its argument is long.
func functions() []string { return []string{"len", "lower", "upper", "trim", "int", "float", "string"} }

// check refuses an expression with something in it that is not bounded.
func check(source string) error {
	tree, err := parser.Parse(source)
	if err != nil {
		return brief(err)
	}
	var c checker
	ast.Walk(&tree.Node, &c)
	return c.err
}

// checker looks at each node, and keeps the first error.
type checker struct {
	nodes int
	err   error
}

// Visit implements ast.Visitor.
func (c *checker) Visit(node *ast.Node) {
	if c.nodes++; c.nodes > limits.FilterNodes {
		c.refuse(*node, fmt.Sprintf("there are more than %d operands and operators", limits.FilterNodes))
		return
	}
	switch n := (*node).(type) {
	case *ast.NilNode, *ast.IdentifierNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode,
		*ast.UnaryNode, *ast.MemberNode, *ast.ChainNode, *ast.ConditionalNode, *ast.ArrayNode:
	case *ast.BinaryNode:
		c.binary(n)
	case *ast.BuiltinNode:
		if !slices.Contains(functions(), n.Name) {
			c.refuse(n, fmt.Sprintf("%.20q is no function here: want one of %s", n.Name, strings.Join(functions(), ", ")))
		}
	case *ast.CallNode:
		c.refuse(n, "nothing can be called here but "+strings.Join(functions(), ", "))
	default:
		c.refuse(n, "loops, names of its own, slices and mappings are not for filters")
	}
}

func (c *checker) binary(n *ast.BinaryNode) {
	switch n.Operator {
	case "..":
		c.refuse(n, "a range is not for filters")
	case "matches":
		pattern, constant := n.Right.(*ast.StringNode)
		if !constant {
			c.refuse(n, "matches takes a pattern in quotes")
			return
		}
		c.pattern(n, pattern.Value)
	}
}

// pattern refuses one that takes long: the time of a match is its size times that of the text.
func (c *checker) pattern(n ast.Node, pattern string) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		c.refuse(n, "the pattern is no regular expression")
		return
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > limits.FilterPatternSteps {
		c.refuse(n, fmt.Sprintf("the pattern has more than %d steps", limits.FilterPatternSteps))
	}
}

func (c *checker) refuse(n ast.Node, why string) {
	if c.err == nil {
		c.err = fmt.Errorf("at character %d: %s", n.Location().From+1, why)
	}
}

// brief returns an error of the language without the text of the expression that it shows.
func brief(err error) error {
	var at *file.Error
	if errors.As(err, &at) {
		return fmt.Errorf("at line %d, character %d: %.120q", at.Line, at.Column+1, at.Message)
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%.120q", text)
}
