package demo

import (
	"strings"

	"github.com/longshore/longshore/examples/misbehaving"
)

// messagesEach is how many messages each consumer that misbehaves gets.
const messagesEach = 2

// topicOf returns the topic of a consumer that misbehaves.
func topicOf(m misbehaving.Module) string { return "misbehaving/" + m.Name }

// reasonClass is a reason without what follows its class: "guest-trap: unreachable" is "guest-trap".
func reasonClass(reason string) string {
	class, _, _ := strings.Cut(reason, ":")
	return class
}

// expectedDead returns how many dead letters of each class the modules must leave.
func expectedDead(mods []misbehaving.Module) map[string]int {
	out := map[string]int{}
	for _, m := range mods {
		out[reasonClass(m.Reason)] += messagesEach
	}
	return out
}
