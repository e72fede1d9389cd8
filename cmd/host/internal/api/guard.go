package api

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// guardAdmin refuses what no tool of ours sends: a Host that isn't local (a page that rebinds its name to this machine)
// and any Origin (a browser).
func guardAdmin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Values("Origin") != nil {
			writeProblem(w, problem(http.StatusForbidden, wire.CodeForeign, "requests with an Origin header are refused here"))
			return
		}
		if !localHost(r.Host) {
			writeProblem(w, problem(http.StatusMisdirectedRequest, wire.CodeForeign, "the Host must be localhost"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guardData refuses what a browser sends for the page of another site: an Origin whose host is not the request's own, as of a
// sandboxed page ("null"), or a Sec-Fetch-Site that says so. Other programs send neither.
func guardData(next http.Handler) http.Handler {
	foreign := func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, problem(http.StatusForbidden, wire.CodeForeign, "requests of other sites' pages are refused"))
	}
	fetch := http.NewCrossOriginProtection()
	fetch.SetDenyHandler(http.HandlerFunc(foreign))
	guarded := fetch.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, origin := range r.Header.Values("Origin") {
			if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
				foreign(w, r)
				return
			}
		}
		guarded.ServeHTTP(w, r)
	})
}

// localHost reports whether a Host header names this machine.
func localHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
