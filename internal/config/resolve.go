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
}

// resolve fills in the defaults and reports what makes no sense together.
func (f *hostFile) resolve(s *sources) *Host {
	h := DefaultHost()
	h.Data, h.Keys, h.Listen.Admin = or(string(f.Data), h.Data), string(f.Keys), string(f.Listen.Admin)
	h.Listen.HTTP = or(f.Listen.HTTP, h.Listen.HTTP)
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
		s.add("grace", formatTime(h.Grace)+" is too large", "want at most "+formatTime(maxGrace))
	}
	if h.Storage.Reserve < leastReserve {
		s.add("storage.reserve", formatSize(h.Storage.Reserve)+" is too small", "want at least "+formatSize(leastReserve))
	}
	if h.Storage.Low < h.Storage.Reserve {
		s.add(s.nearer("storage.low", "storage.reserve"), fmt.Sprintf("low is %s and reserve is %s",
			formatSize(h.Storage.Low), formatSize(h.Storage.Reserve)), "want low to be no smaller than reserve")
	}
	if len(h.Listen.Admin) > maxSocketPath {
		s.add(s.nearer("listen.admin", "data"),
			fmt.Sprintf("the admin socket's path is %d bytes long", len(h.Listen.Admin)),
			fmt.Sprintf("want at most %d; listen.admin sets it", maxSocketPath))
	}
	const right = "want host:port such as 127.0.0.1:7878"
	host, port, err := net.SplitHostPort(h.Listen.HTTP)
	if !s.sound("listen.http") {
		return
	}
	if err != nil {
		s.add("listen.http", quoted(h.Listen.HTTP)+" is not valid", right)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		s.add("listen.http", "port "+quoted(port)+" is not valid", "want 0 to 65535")
	}
	if host == "" {
		s.add("listen.http", quoted(h.Listen.HTTP)+" names no host", right+", or 0.0.0.0 for every interface")
	}
}

// resolveTopics returns the topics' policies and reports those that contradict each other.
func resolveTopics(s *sources, files []*topicFile) []Topic {
	topics := make([]Topic, 0, len(files))
	named := map[[2]string]int{}
	for i, f := range files {
		if f == nil {
			continue
		}
		t, path := f.resolve(), fmt.Sprintf("topics[%d]", i)
		topics = append(topics, t)
		if b := t.MaxMessageBytes; b != nil && (*b < 1 || *b > limits.MessageCeilingBytes) {
			s.add(path+".max_message_bytes", formatSize(*b)+" is out of bounds", "want 1B to "+formatSize(limits.MessageCeilingBytes))
		}
		if !s.sound(path+".topic") || !s.sound(path+".tenant") {
			continue
		}
		key := [2]string{t.Tenant, t.Topic}
		if first, twice := named[key]; twice {
			s.add(path+".topic", fmt.Sprintf("topic %s of tenant %s is given twice, first as topics[%d]",
				quoted(t.Topic), quoted(t.Tenant), first), "want one entry a topic")
			continue
		}
		named[key] = i
	}
	return topics
}

func (f *topicFile) resolve() Topic {
	t := Topic{
		Tenant: tenantOf(f.Tenant), Topic: string(f.Topic), Anonymous: f.Anonymous,
		MaxDepth: f.MaxDepth, MaxRatePerSec: f.MaxRatePerSec, MaxUnflushed: f.MaxUnflushed,
	}
	if f.MaxMessageBytes != nil {
		n := int64(*f.MaxMessageBytes)
		t.MaxMessageBytes = &n
	}
	return t
}

func tenantOf(given *tenantName) string {
	if given == nil {
		return defaultTenant
	}
	return string(*given)
}
