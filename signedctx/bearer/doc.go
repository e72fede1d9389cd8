// Package bearer verifies the bearer tokens that producers and operators of one tenant show: JWTs of issuers that the
// operator of the host configured, each for one tenant, with its algorithm, its audience and the place of its keys.
//
// Nothing in a token chooses any of these: iss and aud say which configured issuer it claims to be of, and alg has to be
// that issuer's. Keys come from the issuer's JSON Web Key Set, by kid, read from a file or fetched by URL; what a token says of
// keys or of their place (jku, jwk, x5u, x5c, crit) is refused. A key set is kept, fetched again when it is old or when a token names a
// kid that it doesn't have, and then at most once in limits.KeySetRetry.
package bearer
