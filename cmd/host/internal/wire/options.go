package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MessageOptions are the options of a stored message; those that ask for nothing are left out.
type MessageOptions struct {
	Delay            string        `json:"delay,omitempty"`
	TTL              string        `json:"ttl,omitempty"`
	Deadline         *time.Time    `json:"deadline,omitempty"`
	IdempotencyKey   string        `json:"idempotency_key,omitempty"`
	Priority         uint8         `json:"priority,omitempty"`
	OrderingKey      string        `json:"ordering_key,omitempty"`
	Fence            *MessageFence `json:"fence,omitempty"`
	RequiredFeatures []string      `json:"required_features,omitempty" nullable:"false"`
	Target           string        `json:"target,omitempty"`
	ReplyTo          string        `json:"reply_to,omitempty"`
}

// MessageFence is a key and a token that rises with each tenure of whoever holds the key.
type MessageFence struct {
	Key   string `json:"key" minLength:"1"`
	Token uint64 `json:"token"`
}

// String returns KEY:TOKEN, as ParseFence reads it.
func (f MessageFence) String() string { return f.Key + ":" + strconv.FormatUint(f.Token, 10) }

// ParseFence reads KEY:TOKEN. The key may have colons too: the token follows the last.
func ParseFence(text string) (MessageFence, error) {
	i := strings.LastIndexByte(text, ':')
	if i > 0 {
		if token, err := strconv.ParseUint(text[i+1:], 10, 64); err == nil {
			return MessageFence{Key: text[:i], Token: token}, nil
		}
	}
	return MessageFence{}, fmt.Errorf("fence %.60q: want KEY:TOKEN, as leader:7", text)
}
