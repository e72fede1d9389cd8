package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBounds writes each bounded value on both sides of each of its bounds.
func TestBounds(t *testing.T) {
	ceilings := DefaultCeilings()
	for _, b := range bounds() {
		t.Run(b.path, func(t *testing.T) {
			top := b.get(&ceilings)
			t.Run("ManifestAtTheCeiling", func(t *testing.T) {
				require.Equal(t, top, mustAsk(t, b, top))
			})
			t.Run("ManifestOverTheCeiling", func(t *testing.T) {
				_, err := ask(b, top+1)
				require.ErrorContains(t, err, fmt.Sprintf("consumers[0].%s: %s is over the ceiling (want %s to %s, the host config's ceilings.%s)",
					b.path, b.unit.format(top+1), b.unit.format(b.min), b.unit.format(top), b.path))
			})
			t.Run("ManifestAtTheLeast", func(t *testing.T) {
				require.Equal(t, b.min, mustAsk(t, b, b.min))
			})
			t.Run("ManifestUnderTheLeast", func(t *testing.T) {
				_, err := ask(b, b.min-1)
				require.ErrorContains(t, err, "consumers[0]."+b.path+": ")
			})
			t.Run("CeilingAtTheMost", func(t *testing.T) {
				h, err := parseHostText("ceilings: " + nest(b, b.max))
				require.NoError(t, err)
				require.Equal(t, b.max, b.get(&h.Ceilings))
			})
			t.Run("CeilingOverTheMost", func(t *testing.T) {
				_, err := parseHostText("ceilings: " + nest(b, b.max+1))
				require.ErrorContains(t, err, "ceilings."+b.path+": ")
			})
		})
	}
}

// nest writes a bound's value as its keys nest. A time below a millisecond has no form in the files, so that it is written
// in decimals.
func nest(b bound, n int64) string {
	value := b.unit.format(n)
	if b.unit == unitTime {
		value = fmt.Sprintf("%d.%06dms", n/1e6, n%1e6)
	}
	section, key, nested := strings.Cut(b.path, ".")
	if !nested {
		return fmt.Sprintf("{%s: %s}", section, value)
	}
	return fmt.Sprintf("{%s: {%s: %s}}", section, key, value)
}

// ask returns what a manifest gets that asks for n, and for what has to go with it.
func ask(b bound, n int64) (int64, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(nest(b, n), "{"), "}")
	switch b.path {
	case "limits.call_time":
		inner += "\n    lease: 1h"
	case "lease":
		inner += "\n    limits: {call_time: 1ms}"
	case "retry.base":
		inner = strings.Replace(inner, "}", ", cap: 24h}", 1)
	case "retry.cap":
		inner = strings.Replace(inner, "}", ", base: 1ms}", 1)
	}
	plan, err := ParseManifest("m.yaml", []byte(plain+"    "+inner+"\n"), DefaultHost())
	if err != nil {
		return 0, err
	}
	return b.get(&plan.Consumers[0].Delivery), nil
}

func mustAsk(t *testing.T, b bound, n int64) int64 {
	t.Helper()
	got, err := ask(b, n)
	require.NoError(t, err)
	return got
}

func parseHostText(text string) (*Host, error) { return ParseHost("h.yaml", []byte(text), Overrides{}) }

func TestDefaultsAreWithinTheCeilings(t *testing.T) {
	defaults, ceilings := DefaultDelivery(), DefaultCeilings()
	for _, b := range bounds() {
		require.LessOrEqual(t, b.min, b.get(&defaults), b.path)
		require.LessOrEqual(t, b.get(&defaults), b.get(&ceilings), b.path)
		require.LessOrEqual(t, b.get(&ceilings), b.max, b.path)
	}
	require.Greater(t, defaults.Lease, defaults.Guest.CallDuration)
}

func TestDefaultsOfTheHostReachTheConsumer(t *testing.T) {
	h, err := parseHostText("defaults: {limits: {fuel: 7}, lease: 9s, retry: {base: 3s}}")
	require.NoError(t, err)
	plan, err := ParseManifest("m.yaml", []byte(plain), h)
	require.NoError(t, err)
	want := DefaultDelivery()
	want.Guest.Fuel, want.Lease, want.Retry.Base = 7, 9*time.Second, 3*time.Second
	require.Equal(t, want, plan.Consumers[0].Delivery)
}

func TestInheritedDefaultIsLoweredToTheCeiling(t *testing.T) {
	h, err := parseHostText("ceilings: {limits: {fuel: 7}, concurrency: 2}")
	require.NoError(t, err)
	require.Equal(t, int64(7), h.Defaults.Guest.Fuel)
	require.Equal(t, 2, h.Defaults.Concurrency)
}

func TestLeaseIsLongerThanTheCallTime(t *testing.T) {
	for lease, fine := range map[string]bool{"999.999999ms": false, "1s": false, "1000.000001ms": true} {
		_, err := ParseManifest("m.yaml", []byte(plain+"    lease: "+lease+"\n"), DefaultHost())
		require.Equal(t, fine, err == nil, "%s: %v", lease, err)
	}
}
