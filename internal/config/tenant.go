package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/longshore/longshore/limits"
)

// Tenant is what the operator says about one tenant: who may say who somebody is, what who may do, and how much there may be.
type Tenant struct {
	Name    string
	Issuers []Issuer
	Grants  []Grant
	Caps    Caps
}

// Issuer is an issuer of bearer tokens for one tenant. See package signedctx/bearer.
type Issuer struct {
	Name      string // begins the subjects of its tokens; unique in the tenant
	Issuer    string // (Issuer, Audience) is unique in the host config
	Audience  string
	Algorithm string
	JWKS      string // a path or a URL
}

// Grant is what the bearers of some tokens may do, in their tenant.
type Grant struct {
	Subject string // the issuer's name, ':', and the token's sub, or all that begin so with a final '*'
	Rights
}

// Rights are what somebody may do in one tenant. The zero value is nothing.
type Rights struct {
	Publish []string // topics to publish to: names, prefixes that end in "/*", or "*"
	Consume []string // topics to read
	Fence   bool     // publish with fences
	Manage  bool     // all else: policies, pauses, groups, dead letters, and to read all topics
}

// MayPublish reports whether messages may be published to a topic.
func (r Rights) MayPublish(topic string) bool { return covers(r.Publish, topic) }

// MayRead reports whether the messages and counts of a topic may be read.
func (r Rights) MayRead(topic string) bool { return r.Manage || covers(r.Consume, topic) }

// covers reports whether one of the grants names the topic.
func covers(grants []string, topic string) bool {
	return slices.ContainsFunc(grants, func(g string) bool {
		prefix, ok := strings.CutSuffix(g, "*")
		return g == topic || ok && strings.HasPrefix(topic, prefix)
	})
}

// Rights returns all that the grants of a tenant give to a subject.
func (h *Host) Rights(tenant, subject string) Rights {
	var all Rights
	for _, t := range h.Tenants {
		if t.Name != tenant {
			continue
		}
		for _, g := range t.Grants {
			prefix, open := strings.CutSuffix(g.Subject, "*")
			if is := g.Subject == subject || open && strings.HasPrefix(subject, prefix); !is {
				continue
			}
			all.Publish, all.Consume = append(all.Publish, g.Publish...), append(all.Consume, g.Consume...)
			all.Fence, all.Manage = all.Fence || g.Fence, all.Manage || g.Manage
		}
	}
	return all
}

type tenantFile struct {
	Tenant  tenantName         `json:"tenant" jsonschema_description:"The tenant's name."`
	Issuers []*issuerFile      `json:"issuers,omitempty" jsonschema:"maxItems=16,title=a list of issuers" jsonschema_description:"Who may say who somebody is: issuers of bearer tokens."`
	Grants  []*tenantGrantFile `json:"grants,omitempty" jsonschema:"maxItems=1000,title=a list of grants" jsonschema_description:"What the bearers of tokens may do. Default: nothing."`
	Caps    *capsFile          `json:"caps,omitempty" jsonschema_description:"The most that it may take of the host, over all of its topics and consumers."`
}

type issuerFile struct {
	Name      consumerName `json:"name" jsonschema_description:"What subjects of its tokens begin with, as in idp:alice. Unique in the tenant."`
	Issuer    bearerText   `json:"issuer" jsonschema_description:"What a token's iss has to be."`
	Audience  bearerText   `json:"audience" jsonschema_description:"What a token's aud has to be, or hold."`
	Algorithm string       `json:"algorithm" jsonschema:"enum=EdDSA,enum=ES256,enum=RS256" jsonschema_description:"How its tokens are signed. No other algorithm is taken."`
	JWKS      textPath     `json:"jwks" jsonschema_description:"Its JSON Web Key Set: a file, relative to this one, or a URL of https, or of http on this machine."`
}

type tenantGrantFile struct {
	Subject subjectName `json:"subject" jsonschema_description:"Whom it is for: the issuer's name, a colon and the token's sub, or all that begin so with a final *."`
	Publish []grant     `json:"publish,omitempty" jsonschema:"maxItems=256,uniqueItems=true,title=a list of topics" jsonschema_description:"The topics to publish to: a name, all below a prefix as in orders/*, or * for all."`
	Consume []grant     `json:"consume,omitempty" jsonschema:"maxItems=256,uniqueItems=true,title=a list of topics" jsonschema_description:"The topics to read, written as those of publish."`
	Fence   bool        `json:"fence,omitempty" jsonschema:"title=true or false" jsonschema_description:"Publish with fences."`
	Manage  bool        `json:"manage,omitempty" jsonschema:"title=true or false" jsonschema_description:"All else that the admin interface does in one tenant."`
}

type (
	bearerText  string
	subjectName string
)

// JSONSchema describes an iss or aud.
func (bearerText) JSONSchema() *jsonschema.Schema {
	return text(`^[^\x00-\x20\x7f]+$`, limits.KeyBytes, "a text without spaces, such as https://id.example")
}

// JSONSchema describes the subject of a grant.
func (subjectName) JSONSchema() *jsonschema.Schema {
	return text(`^[a-z0-9][a-z0-9-]*:[^\x00-\x1f\x7f]+$`, limits.KeyBytes, "an issuer's name, a colon and a sub, such as idp:alice or idp:*")
}

// reservedNames begin the subjects of principals that no issuer speaks for.
func reservedNames() []string { return []string{"local", "consumer", "anonymous"} }

// resolveTenants returns the tenants and reports what makes no sense together.
func resolveTenants(s *sources, files []*tenantFile) []Tenant {
	tenants := make([]Tenant, 0, len(files))
	names, pairs := map[tenantName]int{}, map[[2]string]string{}
	for i, f := range files {
		if f == nil {
			continue
		}
		path := fmt.Sprintf("tenants[%d]", i)
		if first, twice := names[f.Tenant]; twice && s.sound(path+".tenant") {
			s.add(path+".tenant", fmt.Sprintf("tenant %s is given twice, first as tenants[%d]", quoted(string(f.Tenant)), first), "want one entry a tenant")
		}
		names[f.Tenant] = i
		t := Tenant{Name: string(f.Tenant), Caps: f.Caps.resolve(s, path+".caps")}
		for j, is := range f.Issuers {
			if is != nil {
				t.Issuers = append(t.Issuers, is.resolve(s, fmt.Sprintf("%s.issuers[%d]", path, j), t.Issuers, pairs))
			}
		}
		for j, g := range f.Grants {
			if g != nil {
				t.Grants = append(t.Grants, g.resolve(s, fmt.Sprintf("%s.grants[%d]", path, j), t.Issuers))
			}
		}
		tenants = append(tenants, t)
	}
	return tenants
}

// resolve returns an issuer and reports what is wrong with it. pairs are the paths of issuers by iss and aud.
func (f *issuerFile) resolve(s *sources, path string, before []Issuer, pairs map[[2]string]string) Issuer {
	is := Issuer{Name: string(f.Name), Issuer: string(f.Issuer), Audience: string(f.Audience), Algorithm: f.Algorithm, JWKS: string(f.JWKS)}
	named := func(other Issuer) bool { return other.Name == is.Name }
	switch {
	case !s.sound(path + ".name"):
	case slices.Contains(reservedNames(), is.Name):
		s.add(path+".name", quoted(is.Name)+" begins the subjects of the host's own", "want another name")
	case slices.ContainsFunc(before, named):
		s.add(path+".name", quoted(is.Name)+" is also the name of an issuer before", "want a name of its own")
	}
	if s.sound(path+".issuer") && s.sound(path+".audience") {
		pair := [2]string{is.Issuer, is.Audience}
		if first, twice := pairs[pair]; twice {
			s.add(path+".issuer", "its tokens are also those of "+first, "want each pair of issuer and audience once, so that a token is of one tenant")
		} else {
			pairs[pair] = path
		}
	}
	if s.sound(path + ".jwks") {
		if problem := checkKeyPlace(is.JWKS); problem != "" {
			s.add(path+".jwks", problem, "want a path, a URL of https, or one of http on this machine")
		}
	}
	return is
}

// isURL reports whether a place of keys is no path.
func isURL(place string) bool { return strings.Contains(place, "://") }

// checkKeyPlace says what is wrong with a place of keys. Over plain HTTP anybody on the way could put keys of his own there.
func checkKeyPlace(place string) (problem string) {
	if !isURL(place) {
		return ""
	}
	u, err := url.Parse(place)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return quoted(place) + " is no URL of a key set"
	case u.Scheme == "https":
		return ""
	case u.Scheme != "http":
		return quoted(u.Scheme) + " is not a scheme for keys"
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
		return ""
	}
	return "http to another machine is not safe for keys"
}

func (f *tenantGrantFile) resolve(s *sources, path string, issuers []Issuer) Grant {
	g := Grant{Subject: string(f.Subject), Rights: Rights{
		Publish: texts(f.Publish), Consume: texts(f.Consume), Fence: f.Fence, Manage: f.Manage,
	}}
	name, _, _ := strings.Cut(g.Subject, ":")
	if s.sound(path+".subject") && !slices.ContainsFunc(issuers, func(is Issuer) bool { return is.Name == name }) {
		s.add(path+".subject", "the tenant has no issuer named "+quoted(name), "want the name of one of its issuers before the colon")
	}
	return g
}

// in anchors a place of keys that is a relative path.
func (f *issuerFile) in(folder string) {
	if !isURL(string(f.JWKS)) {
		f.JWKS = f.JWKS.in(folder)
	}
}
