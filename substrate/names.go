package substrate

import (
	"strings"

	"github.com/longshore/longshore/limits"
)

// ValidTenant returns a *NameError unless s is a tenant name: 1 to 63 of [a-z0-9-].
func ValidTenant(s string) error {
	if len(s) >= 1 && len(s) <= limits.TenantBytes && only(s, isTenantByte) {
		return nil
	}
	return &NameError{Kind: "tenant", Name: s, Want: "1 to 63 of a-z, 0-9 and -"}
}

// ValidTopic returns a *NameError unless s is a topic name: 1 to 200 bytes, segments of [A-Za-z0-9._-] joined by "/",
// none of them empty, "." or "..".
func ValidTopic(s string) error {
	if len(s) >= 1 && len(s) <= limits.TopicBytes && validSegments(s) {
		return nil
	}
	return &NameError{Kind: "topic", Name: s, Want: `1 to 200 bytes, segments of A-Z a-z 0-9 . _ - joined by "/", none empty, "." or ".."`}
}

// validLane accepts the default lane, which has no name, and names of groups.
func validLane(s string) error {
	if s == "" {
		return nil
	}
	return ValidGroup(s)
}

// ValidGroup returns a *NameError unless s is the name of a consumer group: 1 to 64 of [A-Za-z0-9._-], and not "." or "..".
func ValidGroup(s string) error {
	if len(s) >= 1 && len(s) <= limits.GroupBytes && validSegments(s) && !strings.Contains(s, "/") {
		return nil
	}
	return &NameError{Kind: "group", Name: s, Want: `1 to 64 of A-Z a-z 0-9 . _ -, and not "." or ".."`}
}

// ValidBucket returns a *NameError unless s is the name of a bucket: 1 to 64 of [A-Za-z0-9._-], and not "." or "..".
func ValidBucket(s string) error {
	if len(s) >= 1 && len(s) <= limits.BucketBytes && validSegments(s) && !strings.Contains(s, "/") {
		return nil
	}
	return &NameError{Kind: "bucket", Name: s, Want: `1 to 64 of A-Z a-z 0-9 . _ -, and not "." or ".."`}
}

func validName(tenant, topic string) error {
	if err := ValidTenant(tenant); err != nil {
		return err
	}
	return ValidTopic(topic)
}

func validSegments(s string) bool {
	for segment := range strings.SplitSeq(s, "/") {
		if segment == "" || segment == "." || segment == ".." || !only(segment, isTopicByte) {
			return false
		}
	}
	return true
}

func only(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}

func isTenantByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-'
}

func isTopicByte(c byte) bool {
	return isTenantByte(c) || c >= 'A' && c <= 'Z' || c == '.' || c == '_'
}
