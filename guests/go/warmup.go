package longshore

// WarmUp sets a function that the host calls once, after initialisation and before the first message, in which it may do
// what each message would otherwise do anew: parse templates, compile expressions, run the handler's code on made-up data.
// What it leaves in variables is there in every message. Call it once, from an init function. It panics if f is nil or if
// there is one already.
//
// It may not publish, and shouldn't draw random numbers to keep, because every message would find the same, nor end with
// runtime.GC, because each message would then begin with the sweeping that a collection leaves for later.
func WarmUp(f func()) {
	switch {
	case f == nil:
		panic("longshore: WarmUp: the function is nil")
	case guest.warmUp != nil:
		panic("longshore: WarmUp was called twice: a module has one warm-up")
	}
	guest.warmUp = f
}

// warm runs the warm-up, if there is one.
func (g *instance) warm() {
	if g.warmUp != nil {
		g.warmUp()
	}
}
