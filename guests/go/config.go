package longshore

// Config returns what the manifest says for a key under config, and whether it says anything. Call it from a handler only.
func Config(key string) (value string, found bool) {
	if checkKey(key) != nil {
		return "", false
	}
	var ret area
	abiConfigGet(key, &ret)
	v := ret.view()
	if v.u8(layoutResultValue.at(discriminant)) != 0 {
		return "", false // a host that reads its configuration from elsewhere; this one doesn't
	}
	v = v[layoutResultValue.at(payload):]
	if v.u8(layoutOptString.at(discriminant)) == 0 {
		return "", false
	}
	return guest.heap.liftString(v, layoutOptString.at(payload)), true
}
