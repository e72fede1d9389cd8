package component

import (
	"errors"
	"fmt"
	"strings"
)

// Wanted is an interface that a component may export, and the function of it that is called.
type Wanted struct{ Interface, Function string }

// Handler is a handler that a component exports, and the core module behind it.
type Handler struct {
	Interface  string
	Module     []byte // shares memory with the component
	Function   string // names of functions that the module exports
	PostReturn string // "" = none
	Realloc    string // "" = none
}

// Find returns the handler behind the first of the wanted interfaces that the component exports. It takes time and memory
// linear in the size of the component.
func Find(wasm []byte, wanted []Wanted) (*Handler, error) {
	c, err := parse(wasm)
	if err != nil {
		return nil, fmt.Errorf("component: %w", err)
	}
	for _, w := range wanted {
		for _, e := range c.exports {
			if e.name == w.Interface && e.sort == instanceSort {
				h, err := c.handler(e.index, w)
				if err != nil {
					return nil, fmt.Errorf("component: export %q: %w", w.Interface, err)
				}
				return h, nil
			}
		}
	}
	return nil, fmt.Errorf("component: no handler: it exports %s; one of %s is wanted", c.exported(), interfaces(wanted))
}

// handler follows the function of an exported instance to its module.
func (c *component) handler(instance int, w Wanted) (*Handler, error) {
	f, err := c.funcOf(instance, w.Function)
	if err != nil {
		return nil, err
	}
	lift := c.spaces[funcSort][f]
	switch lift.kind {
	case kindLift:
	case kindExportOf:
		return nil, errComposed
	case kindImport:
		return nil, fmt.Errorf("function %q is an import of the component", w.Function)
	default:
		return nil, fmt.Errorf("function %q is not lifted from a module", w.Function)
	}
	if lift.opts.async {
		return nil, errAsync
	}
	if lift.opts.encoding != 0 {
		return nil, errors.New("strings of another encoding than UTF-8 are not supported")
	}
	core, name, err := c.coreExport(lift.of)
	if err != nil {
		return nil, err
	}
	h := &Handler{Interface: w.Interface, Function: name, Module: c.spaces[coreModule][c.spaces[coreInstance][core].of].body}
	if h.Module == nil {
		return nil, errors.New("its module is an import of the component")
	}
	if h.PostReturn, err = c.named(core, lift.opts.postReturn); err != nil {
		return nil, fmt.Errorf("post-return: %w", err)
	}
	if h.Realloc, err = c.named(core, c.reallocOf(core, lift.opts.realloc)); err != nil {
		return nil, fmt.Errorf("realloc: %w", err)
	}
	return h, c.checkMemory(core, lift.opts.memory)
}

// errComposed refuses components that are made of others.
var errComposed = errors.New("components that are composed of others are not supported; give the one that has the handler")

// funcOf returns the function that an instance exports by a name.
func (c *component) funcOf(instance int, name string) (int, error) {
	d := c.spaces[instanceSort][instance]
	if d.kind != kindInstance {
		return 0, errComposed
	}
	if d.of >= 0 {
		argument, err := c.passedThrough(d.of, name)
		if err != nil {
			return 0, err
		}
		name = argument
	}
	for _, i := range d.items {
		if i.name == name && i.sort == funcSort {
			return i.index, nil
		}
	}
	return 0, fmt.Errorf("there is no function %q", name)
}

// passedThrough returns the argument that a nested component exports again by a name. Toolchains make such components to
// give an instance its type; one that does more is a component of its own.
func (c *component) passedThrough(comp int, name string) (string, error) {
	nested := c.spaces[compSort][comp]
	if nested.kind != kindNested {
		return "", errComposed
	}
	inner, err := parse(nested.body)
	if err != nil {
		return "", fmt.Errorf("nested component: %w", err)
	}
	for _, e := range inner.exports {
		if e.name != name || e.sort != funcSort {
			continue
		}
		if f := inner.spaces[funcSort][e.index]; f.kind == kindImport {
			return f.name, nil
		}
		return "", errComposed
	}
	return "", fmt.Errorf("there is no function %q", name)
}

// coreExport follows a core function to the instance of a module that exports it, and returns its name there.
func (c *component) coreExport(f int) (instance int, name string, err error) {
	d := c.spaces[coreFunc][f]
	for d.kind == kindExportOf { // each step leads to something that was defined before
		from := c.spaces[coreInstance][d.of]
		if from.of >= 0 {
			return d.of, d.name, nil
		}
		next := -1
		for _, i := range from.items {
			if i.name == d.name && i.sort == coreFunc {
				next = i.index
			}
		}
		if next < 0 {
			return 0, "", fmt.Errorf("there is no core function %.80q", d.name)
		}
		d = c.spaces[coreFunc][next]
	}
	return 0, "", errors.New("it is not the export of a module")
}

// named returns the name by which an instance exports a core function; "" for -1.
func (c *component) named(instance, f int) (string, error) {
	if f < 0 {
		return "", nil
	}
	from, name, err := c.coreExport(f)
	if err == nil && from != instance {
		err = errors.New("it is of another module than the handler: dynamic linking is not supported")
	}
	return name, err
}

// reallocOf returns the allocator of a lift, or else that which a lowered function of the same instance uses.
func (c *component) reallocOf(instance, given int) int {
	if given >= 0 {
		return given
	}
	for _, d := range c.spaces[coreFunc] {
		if d.kind != kindLower || d.opts.realloc < 0 {
			continue
		}
		if from := c.spaces[coreFunc][d.opts.realloc]; from.kind == kindExportOf && from.of == instance {
			return d.opts.realloc
		}
	}
	return -1
}

// checkMemory refuses a handler whose values are in the memory of another module.
func (c *component) checkMemory(instance, memory int) error {
	if memory < 0 {
		return nil
	}
	if d := c.spaces[coreMemory][memory]; d.kind != kindExportOf || d.of != instance {
		return errors.New("its memory is of another module: dynamic linking is not supported")
	}
	return nil
}

// maxNamed bounds how many exports an error names.
const maxNamed = 8

func (c *component) exported() string {
	if len(c.exports) == 0 {
		return "nothing"
	}
	var names []string
	for i, e := range c.exports {
		if i == maxNamed {
			names = append(names, fmt.Sprintf("%d more", len(c.exports)-i))
			break
		}
		names = append(names, fmt.Sprintf("%.80q", e.name))
	}
	return strings.Join(names, ", ")
}

func interfaces(wanted []Wanted) string {
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.Interface
	}
	return strings.Join(names, ", ")
}
