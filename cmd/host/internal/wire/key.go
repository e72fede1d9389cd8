package wire

// Key describes a key of signed contexts, without the key.
type Key struct {
	ID        string `json:"id"`
	Kind      string `json:"kind" enum:"token,seal"`
	Algorithm string `json:"algorithm" enum:"EdDSA,HS256"`
	State     string `json:"state" enum:"signs,verifies,public" doc:"public: it has no secret, and so never signs here"`
}

// KeyList answers with the keys, oldest first.
type KeyList struct {
	Keys []Key `json:"keys" nullable:"false"`
}

// KeyChange says which kind of key is rotated, or which key is retired.
type KeyChange struct {
	Kind string `json:"kind" enum:"token,seal"`
}

// KeyRetired answers that a key is retired.
type KeyRetired struct {
	Scanned int `json:"scanned" doc:"stored messages that were looked at; none names the key"`
}
