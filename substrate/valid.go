package substrate

// ValidMessage returns an error if no topic takes m, whatever its policy: a *NameError, *limits.Error or *OptionError that
// says what is wrong with its names, sizes or options. It doesn't look at the id, and not whether the context is genuine.
func ValidMessage(m Message) error {
	if err := validName(m.Tenant, m.Topic); err != nil {
		return err
	}
	return checkSizes(&m)
}
