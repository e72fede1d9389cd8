// Package redaction_test builds the consumer of this example from source and runs log lines through the real runtime.
package redaction_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestRedaction(t *testing.T) {
	consumer := guestbuild.Consumers(t, guestbuild.Rust, ".")["redaction"]
	for name, c := range map[string]struct{ give, want string }{
		"AMailAddress":           {`user "ada@example.com" logged in`, `user "[mail]" logged in`},
		"ACardNumber":            {"card=4111111111111111;", "card=[card];"},
		"ACardNumberWithDashes":  {"4111-1111-1111-1111", "[card]"},
		"ATokenWhateverItsCase":  {"Authorization: bearer eyJhbGciOi.x.y", "Authorization: bearer [token]"},
		"AllLinesOfAMessage":     {"a@b.example\nfine\nc@d.example\n", "[mail]\nfine\n[mail]\n"},
		"ANumberThatIsNoCard":    {"order 4111111111111112 at 12:30", "order 4111111111111112 at 12:30"},
		"WhatOnlyLooksLikeMail":  {"@ a@ @b a@b x@y@z.example", "@ a@ @b a@b x@y@z.example"},
		"TextInOtherScripts":     {"größe „ü@x.example“ ✓", "größe [mail] ✓"},
		"ALineWithoutAnything":   {"", ""},
		"WordsThatFollowNothing": {"bearer", "bearer"},
	} {
		t.Run(name, func(t *testing.T) {
			pairs := []messaging.Pair{{Key: "service", Value: "shop"}}
			o, out := consumer.Deliver(t, messaging.Message{Data: []byte(c.give), ContentType: "text/plain", Metadata: pairs})
			require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
			require.Len(t, out, 1)
			require.Equal(t, c.want, string(out[0].Message.Data))
			require.Equal(t, "text/plain", out[0].Message.ContentType)
			require.Equal(t, pairs, out[0].Message.Metadata)
		})
	}
	t.Run("WhatIsNotUTF8IsAnErrorAndNothingIsPublished", func(t *testing.T) {
		o, out := consumer.Deliver(t, messaging.Message{Data: []byte("ok \xff")})
		require.Equal(t, "guest-error: other", o.Reason())
		require.Equal(t, "not UTF-8 from byte 3 on", o.GuestText)
		require.Empty(t, out)
	})
	t.Run("ManyLinesFitIntoTheDefaultLimits", func(t *testing.T) {
		o, out := consumer.Deliver(t, messaging.Message{Data: []byte(strings.Repeat("paid by ada@example.com\n", 10_000))})
		require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
		require.Equal(t, strings.Repeat("paid by [mail]\n", 10_000), string(out[0].Message.Data))
	})
}
