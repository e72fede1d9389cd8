package wire

// Tenant is what a host has of a tenant: what goes if it is deleted.
type Tenant struct {
	Name        string           `json:"name"`
	Topics      int              `json:"topics"`
	Messages    int64            `json:"messages" doc:"stored, whatever for"`
	Bytes       int64            `json:"bytes" doc:"of their payloads"`
	DeadLetters int64            `json:"dead_letters" doc:"of these messages"`
	Quarantined int64            `json:"quarantined"`
	Groups      int              `json:"groups"`
	Buckets     int              `json:"buckets"`
	ValueBytes  int64            `json:"value_bytes"`
	Versions    int              `json:"versions" doc:"kept of its consumers"`
	Consumers   []string         `json:"consumers" doc:"that run; while there are any, it can't be deleted"`
	Deleting    bool             `json:"deleting,omitempty"`
	Refused     map[string]int64 `json:"refused,omitempty" doc:"what each cap refused since the host started"`
}

// TenantList is a list of tenants, by name.
type TenantList struct {
	Tenants []Tenant `json:"tenants"`
}
