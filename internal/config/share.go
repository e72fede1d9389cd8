package config

import "fmt"

// Share is what a tenant gets of the workers when tenants compete for them.
type Share struct {
	Tenant       string
	Weight       int // in proportion to the others
	FloorPercent int // of all recent execution, before any weight
}

// resolveShares returns the shares, and reports those that contradict each other.
func resolveShares(s *sources, files []*shareFile) []Share {
	var shares []Share
	named, floors := map[string]int{}, 0
	for i, f := range files {
		if f == nil {
			continue
		}
		path := fmt.Sprintf("shares[%d]", i)
		one := Share{Tenant: string(f.Tenant), Weight: int(orNumber(f.Weight, 1)), FloorPercent: int(orNumber(f.FloorPercent, 0))}
		shares = append(shares, one)
		if floors += one.FloorPercent; floors > 100 && floors-one.FloorPercent <= 100 {
			s.add(path+".floor_percent", fmt.Sprintf("the floors up to here make %d", floors), "want at most 100 of all tenants together")
		}
		if !s.sound(path + ".tenant") {
			continue
		}
		if first, twice := named[one.Tenant]; twice {
			s.add(path+".tenant", fmt.Sprintf("tenant %s is given twice, first as shares[%d]", quoted(one.Tenant), first), "want one entry a tenant")
			continue
		}
		named[one.Tenant] = i
	}
	return shares
}

func orNumber(given *int64, otherwise int64) int64 {
	if given == nil {
		return otherwise
	}
	return *given
}
