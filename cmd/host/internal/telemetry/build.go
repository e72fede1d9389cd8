package telemetry

import (
	goruntime "runtime"
	"runtime/debug"
)

// Build says which binary this is.
type Build struct {
	Version  string `json:"version"`  // of the module, or "devel"
	Revision string `json:"revision"` // of the source; "" if it was not built from a checkout
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild reads what the Go toolchain wrote into the binary.
func ReadBuild() Build {
	b := Build{Version: "devel", Go: goruntime.Version(), Platform: goruntime.GOOS + "/" + goruntime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.Revision = s.Value + b.Revision
		case s.Key == "vcs.modified" && s.Value == "true":
			b.Revision += "+changes"
		}
	}
	return b
}
