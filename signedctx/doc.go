// Package signedctx makes and verifies the signed context of a message: an envelope that says who published it, made
// by the host when the message is published, and verified by the host before a consumer sees the message.
//
// An envelope has two parts. The token, a JWT, says who; one serves all messages of a principal for a short window, so
// that its costly signature is amortised. The seal, a MAC of the host, binds the token to one message and to the time
// of its publication.
//
//	envelope   u8   version, 1
//	           u16  n          n bytes   the token
//	           u8   m          m bytes   the id of the seal key
//	           u64  sealed, milliseconds since 1970
//	           32 bytes        the digest of the binding
//	           the rest        the seal: 32 bytes of HMAC-SHA-256, or 64 of Ed25519
//
//	seal     = HMAC-SHA-256, or a signature of Ed25519, under the seal key of(
//	               text "longshore signed context seal v1"
//	             ‖ text seal key id
//	             ‖ u64 sealed
//	             ‖ SHA-256(token)
//	             ‖ digest)
//
//	digest   = SHA-256(
//	               text "longshore signed context binding v1"
//	             ‖ text message id ‖ text tenant ‖ text topic
//	             ‖ SHA-256(payload)
//	             ‖ text content type
//	             ‖ u64 pairs of metadata ‖ for each, in order: text key ‖ text value
//	             ‖ text options
//	             ‖ text parent id
//	             ‖ u32 hops)
//
//	text s   = u64 length in bytes ‖ the bytes
//
// All numbers are big-endian. Every variable part is preceded by its length, so that two different messages never have
// the same encoding, and the leading texts keep the two hashes apart from each other and from any other use. The
// digest is a part of the envelope only to tell a seal that nobody with the key made (ClassSignature) from a genuine
// one that belongs to another message (ClassMismatch).
//
// The token's header holds exactly alg, kid and typ ("longshore-ctx+jwt"); its claims are exactly
//
//	iss  the issuer, a host or fleet        iat, exp  its window, seconds since 1970
//	aud  the tenant, one string             jti       a random id
//	tnt  the tenant                         ext       the producer's own claims, an object of strings
//	sub  the principal
//
// Algorithm and key come from the keyring, by kid within the issuer; nothing in a token chooses either. The token's
// window limits when it may seal. It is compared with the sealed time, never with the time of delivery, so that a
// message may wait as long as its topic allows; and no check reads the clock at delivery, so that a clock set back
// refuses nothing.
package signedctx
