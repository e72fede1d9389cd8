package config

import (
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/longshore/longshore/limits"
)

// defaultTenant owns what names no tenant.
const defaultTenant = "default"

// leastReserve is the least free space that the log can tell from a full disk between two commits.
const leastReserve = 32 * limits.MiB

// maxSocketPath is the longest path that a Unix socket can have here.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// anchor makes the file's relative paths relative to the file's folder.
func (f *hostFile) anchor(folder string) {
	for _, path := range []*textPath{&f.Data, &f.Keys, &f.Listen.Admin} {
		*path = path.in(folder)
	}
	for i := range f.Trust {
		f.Trust[i] = f.Trust[i].in(folder)
	}
	for _, t := range f.Tenants {
		if t == nil {
			continue
		}
		for _, is := range t.Issuers {
			if is != nil {
				is.in(folder)
			}
		}
	}
}

// resolve fills in the defaults and reports what makes no sense together.
func (f *hostFile) resolve(s *sources) *Host {
	h := DefaultHost()
	h.Data, h.Keys, h.Listen.Admin = or(string(f.Data), h.Data), string(f.Keys), string(f.Listen.Admin)
	h.Issuer, h.Seal, h.Trust = or(string(f.Issuer), h.Issuer), or(f.Seal, h.Seal), texts(f.Trust)
	h.Listen.HTTP, h.Listen.AdminHTTP = or(f.Listen.HTTP, h.Listen.HTTP), f.Listen.AdminHTTP
	h.Log = Log{Level: or(f.Log.Level, h.Log.Level), Format: or(f.Log.Format, h.Log.Format)}
	h.derive()
	for _, mark := range []struct {
		given *size
		value *int64
	}{{f.Storage.Low, &h.Storage.Low}, {f.Storage.Reserve, &h.Storage.Reserve}} {
		if mark.given != nil {
			*mark.value = int64(*mark.given)
		}
	}
	if f.Grace != nil {
		h.Grace = time.Duration(*f.Grace)
	}
	h.check(s)
	h.Ceilings = resolve(s, "ceilings", &f.Ceilings, h.Ceilings, hardMost)
	h.Defaults = resolve(s, "defaults", &f.Defaults, h.Defaults, h.Ceilings.most)
	checkPairs(s, "defaults", h.Defaults)
	h.Tenants = resolveTenants(s, f.Tenants)
	h.Shares = resolveShares(s, f.Shares)
	h.Topics = resolveTopics(s, f.Topics)
	return h
}

func or(given, otherwise string) string {
	if given == "" {
		return otherwise
	}
	return given
}

// check reports what is wrong with the scalars beyond their form.
func (h *Host) check(s *sources) {
	if h.Grace > maxGrace {
		s.add("grace", FormatDuration(h.Grace)+" is too large", "want at most "+FormatDuration(maxGrace))
	}
	if h.Storage.Reserve < leastReserve {
		s.add("storage.reserve", FormatSize(h.Storage.Reserve)+" is too small", "want at least "+FormatSize(leastReserve))
	}
	if h.Storage.Low < h.Storage.Reserve {
		s.add(s.nearer("storage.low", "storage.reserve"), fmt.Sprintf("low is %s and reserve is %s",
			FormatSize(h.Storage.Low), FormatSize(h.Storage.Reserve)), "want low to be no smaller than reserve")
	}
	if len(h.Listen.Admin) > maxSocketPath {
		s.add(s.nearer("listen.admin", "data"),
			fmt.Sprintf("the admin socket's path is %d bytes long", len(h.Listen.Admin)),
			fmt.Sprintf("want at most %d; listen.admin sets it", maxSocketPath))
	}
	checkAddress(s, "listen.http", h.Listen.HTTP)
	if h.Listen.AdminHTTP != "" {
		checkAddress(s, "listen.admin_http", h.Listen.AdminHTTP)
	}
}

// checkAddress reports what is wrong with the address of a listener.
func checkAddress(s *sources, path, address string) {
	const right = "want host:port such as 127.0.0.1:7878"
	host, port, err := net.SplitHostPort(address)
	if !s.sound(path) {
		return
	}
	if err != nil {
		s.add(path, quoted(address)+" is not valid", right)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		s.add(path, "port "+quoted(port)+" is not valid", "want 0 to 65535")
	}
	if host == "" {
		s.add(path, quoted(address)+" names no host", right+", or 0.0.0.0 for every interface")
	}
}

func tenantOf(given *tenantName) string {
	if given == nil {
		return defaultTenant
	}
	return string(*given)
}
