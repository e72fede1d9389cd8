package messaging

import (
	"slices"
	"strings"
)

// mangling is one of the two ways to write WIT names into a core module:
//
//	             | legacy                      | standard32
//	import from  | package/interface@0.1.0     | cm32p2|package/interface@0.1
//	a drop       | [resource-drop]name         | name_drop
//	an export    | package/interface@0.1.0#f   | cm32p2|package/interface@0.1|f
//	post-return  | cabi_post_ and the export   | the export and _post
//	the others   | memory, cabi_realloc,       | cm32p2_memory, cm32p2_realloc,
//	             | _initialize                 | cm32p2_initialize
//
// Pre-releases keep their whole version in both.
type mangling struct {
	prefix                      string // of modules and exports
	beforeFunc                  string // between an interface and its function, in exports
	postPrefix, postSuffix      string
	memory, realloc, initialize string
}

var (
	legacy = mangling{
		beforeFunc: "#", postPrefix: "cabi_post_", memory: "memory", realloc: "cabi_realloc", initialize: "_initialize",
	}
	standard32 = mangling{
		prefix: "cm32p2|", beforeFunc: "|", postSuffix: "_post",
		memory: "cm32p2_memory", realloc: "cm32p2_realloc", initialize: "cm32p2_initialize",
	}
)

// module writes the name of an interface.
func (g *mangling) module(iface, version string) string {
	if g == &standard32 {
		version = canonicalVersion(version)
	}
	if version != "" {
		version = "@" + version
	}
	return g.prefix + iface + version
}

// export writes the name of an exported function.
func (g *mangling) export(iface, version, name string) string {
	return g.module(iface, version) + g.beforeFunc + name
}

// post writes the name of the post-return function of an export.
func (g *mangling) post(export string) string { return g.postPrefix + export + g.postSuffix }

// importName writes the name of a function that is imported, whose legacy name is given.
func (g *mangling) importName(name string) string {
	if resource, ok := strings.CutPrefix(name, "[resource-drop]"); ok && g == &standard32 {
		return resource + "_drop"
	}
	return name
}

// canonicalVersion leaves of a release what tells it from incompatible ones: 0.1.0 becomes 0.1, 2.3.4 becomes 2.
func canonicalVersion(version string) string {
	parts := strings.Split(version, ".")
	if len(parts) != 3 || strings.ContainsAny(version, "-+") {
		return version
	}
	if parts[0] != "0" {
		return parts[0]
	}
	if parts[1] != "0" {
		return parts[0] + "." + parts[1]
	}
	return version
}

// splitModule reads the name of an import module.
func splitModule(module string) (g *mangling, iface, version string) {
	g = &legacy
	if rest, ok := strings.CutPrefix(module, standard32.prefix); ok {
		g, module = &standard32, rest
	}
	iface, version, _ = strings.Cut(module, "@")
	return g, iface, version
}

// has says whether the interface goes by that version.
func (i *hostInterface) has(g *mangling, version string) bool {
	return slices.ContainsFunc(i.versions, func(v string) bool {
		if track, ok := strings.CutSuffix(v, ".*"); ok {
			return version == track && g == &standard32 ||
				strings.HasPrefix(version, track+".") && !strings.ContainsAny(version, "-+")
		}
		return version == v || g == &standard32 && version == canonicalVersion(v)
	})
}

// find returns the function that a guest of the draft imports by that name.
func find(module, name string, d Draft) (hostFunc, bool) {
	g, iface, version := splitModule(module)
	for _, i := range interfaces() {
		if i.name != iface || !i.has(g, version) || i.draft != "" && i.draft != d {
			continue
		}
		for _, f := range i.funcs {
			if g.importName(f.name) == name {
				return f, true
			}
		}
	}
	return hostFunc{}, false
}
