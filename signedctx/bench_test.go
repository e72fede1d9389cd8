package signedctx

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkSealAndVerify is what a message costs with its token amortised: sealed at publish and verified at delivery.
func BenchmarkSealAndVerify(b *testing.B) {
	for _, a := range []Algorithm{EdDSA, HS256} {
		for _, size := range []int{256, 1024, 65536} {
			b.Run(fmt.Sprintf("%s/payload=%d", a, size), func(b *testing.B) {
				k := newKeyring(b, []Key{newKey(b, a)}, []Key{newKey(b, HS256)})
				c, err := New(k, "harbour", time.Now)
				require.NoError(b, err)
				p, m := Principal{Tenant: "acme", Subject: "local:1000"}, binding()
				m.Payload = make([]byte, size)
				b.ReportAllocs()
				for b.Loop() {
					e, err := c.Seal(p, m)
					if err == nil {
						_, err = c.Verify(e, m)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(mustSeal(b, c, p, m))), "envelope-bytes")
			})
		}
	}
}

// BenchmarkToken is what a token costs where no cache helps: the first message of a principal in a window.
func BenchmarkToken(b *testing.B) {
	for _, a := range []Algorithm{EdDSA, HS256} {
		k := newKeyring(b, []Key{newKey(b, a)}, []Key{newKey(b, HS256)})
		b.Run(string(a)+"/mint", func(b *testing.B) {
			for b.Loop() {
				if _, _, err := mint(k.signer, "harbour", principal(), start); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(string(a)+"/verify", func(b *testing.B) {
			raw, _, err := mint(k.signer, "harbour", principal(), start)
			require.NoError(b, err)
			for b.Loop() {
				if _, err := k.verifyToken(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
