package api

import (
	"io"
	"net/http"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// addHealth serves /livez, which answers as long as the process serves, and /readyz, which answers 503 while ready
// returns an error.
func addHealth(mux *http.ServeMux, ready func() error) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { sayOK(w) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			writeProblem(w, later(problem(http.StatusServiceUnavailable, wire.CodeUnavailable, err.Error()), 0))
			return
		}
		sayOK(w)
	})
}

func sayOK(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, "ok\n")
}
