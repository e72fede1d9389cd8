package longshore

// Where the fields of the ABI's types lie in linear memory. Numbers are little-endian. Offsets follow from the types by the
// rules of the canonical ABI: a field lies at the next multiple of its alignment, a variant is a one-byte discriminant and
// then, aligned for the largest of them, the payload of its case. layout_test.go has the resulting table.
//
//	string, list      | addr u32 | length u32 |
//	pair              | key string | value string |
//	option<T>         | is some u8 | T |
//	result<T, E>      | is error u8 | T or E |
//	error             | case u8 | text string |
//	outgoing          | topic string | message u32 | options option<publish-options> |
//	publish's own     | client u32 | topic string | message u32 | options option<publish-options> |
//	limit             | limit u64 | actual u64 | retry-after option<u64> | extensions list |
//	publish-error     | case u8 | limit or text string |
//	receipt           | id string | duplicate u8 | extensions list |
//	outcome           | case u8 | delay option<u64> or text string |

// layout is the size and alignment of a type in bytes, and the offsets of its fields.
type layout struct {
	size, align uint32
	offsets     []uint32
}

// at returns the offset of a field, by its number from 0.
func (l layout) at(field int) uint32 { return l.offsets[field] }

// Fields of every variant, options and results among them.
const (
	discriminant = 0
	payload      = 1
)

// Fields of the records that this package reads or writes.
const (
	pairKey   = 0
	pairValue = 1

	outgoingTopic   = 0
	outgoingMessage = 1
	outgoingOptions = 2

	publishClient  = 0
	publishTopic   = 1
	publishMessage = 2
	publishOptions = 3

	fenceKey   = 0
	fenceToken = 1

	limitLimit      = 0
	limitActual     = 1
	limitRetryAfter = 2
	limitExtensions = 3

	receiptID         = 0
	receiptDuplicate  = 1
	receiptExtensions = 2
)

// Fields of publish-options.
const (
	optionsDelay = iota
	optionsTTL
	optionsDeadline
	optionsPriority
	optionsIdempotencyKey
	optionsOrderingKey
	optionsFence
	optionsRequiredFeatures
	optionsTarget
	optionsCause
	optionsExtensions
)

// Fields of claims.
const (
	claimsTenant = iota
	claimsSubject
	claimsIssuer
	claimsTokenID
	claimsIssuedAt
	claimsExtra
	claimsExtensions
)

// Fields of delivery-info.
const (
	infoID = iota
	infoTopic
	infoAttempt
	infoMaxAttempts
	infoPreviousReason
	infoGroup
	infoPublishedAt
	infoExpiresAt
	infoDeadline
	infoPriority
	infoIdempotencyKey
	infoOrderingKey
	infoFence
	infoParent
	infoHops
	infoClaims
	infoTrace
	infoExtensions
)

// The types, in the order in which they build on each other.
var (
	layoutNone = scalar(0)
	layoutU8   = scalar(1)
	layoutU32  = scalar(4)
	layoutU64  = scalar(8)

	layoutString     = record(layoutU32, layoutU32)
	layoutList       = record(layoutU32, layoutU32)
	layoutPair       = record(layoutString, layoutString)
	layoutOptString  = option(layoutString)
	layoutOptList    = option(layoutList)
	layoutOptU64     = option(layoutU64)
	layoutError      = variant(layoutNone, layoutString, layoutString, layoutString)
	layoutResultNone = result(layoutNone, layoutError)
	layoutResultOwn  = result(layoutU32, layoutError)
	layoutResultList = result(layoutList, layoutError)

	layoutFence          = record(layoutString, layoutU64)
	layoutOptFence       = option(layoutFence)
	layoutPublishOptions = record(
		layoutOptU64,    // delay
		layoutOptU64,    // ttl
		layoutOptU64,    // deadline
		layoutU8,        // priority
		layoutOptString, // idempotency-key
		layoutOptString, // ordering-key
		layoutOptFence,  // fence
		layoutList,      // required-features
		layoutOptString, // target
		layoutOptString, // cause
		layoutList,      // extensions
	)
	layoutOptOptions = option(layoutPublishOptions)
	layoutOutgoing   = record(layoutString, layoutU32, layoutOptOptions)
	layoutPublish    = record(layoutU32, layoutString, layoutU32, layoutOptOptions)

	layoutLimit        = record(layoutU64, layoutU64, layoutOptU64, layoutList)
	layoutPublishError = variant(layoutLimit, layoutString)
	layoutReceipt      = record(layoutString, layoutU8, layoutList)
	layoutResultItem   = result(layoutReceipt, layoutPublishError)
	layoutResultBatch  = result(layoutList, layoutPublishError)

	layoutClaims = record(
		layoutString, // tenant
		layoutString, // subject
		layoutString, // issuer
		layoutString, // token-id
		layoutU64,    // issued-at
		layoutList,   // extra
		layoutList,   // extensions
	)
	layoutOptClaims = option(layoutClaims)
	layoutInfo      = record(
		layoutString,    // id
		layoutString,    // topic
		layoutU32,       // attempt
		layoutU32,       // max-attempts
		layoutOptString, // previous-reason
		layoutOptString, // group
		layoutU64,       // published-at
		layoutOptU64,    // expires-at
		layoutOptU64,    // deadline
		layoutU8,        // priority
		layoutOptString, // idempotency-key
		layoutOptString, // ordering-key
		layoutOptFence,  // fence
		layoutOptString, // parent
		layoutU32,       // hops
		layoutOptClaims, // claims
		layoutList,      // trace
		layoutList,      // extensions
	)
	layoutOptInfo = option(layoutInfo)

	layoutOutcome        = variant(layoutNone, layoutOptU64, layoutString)
	layoutResultOutcomes = result(layoutList, layoutError)

	layoutValueError   = variant(layoutNone, layoutNone, layoutString)
	layoutKeys         = record(layoutList, layoutOptU64)
	layoutResultBucket = result(layoutU32, layoutValueError)
	layoutResultValue  = result(layoutOptList, layoutValueError)
	layoutResultStored = result(layoutNone, layoutValueError)
	layoutResultBool   = result(layoutU8, layoutValueError)
	layoutResultKeys   = result(layoutKeys, layoutValueError)
)

// scalar lays out a number of so many bytes, which is its alignment too; 0 bytes are the absent type.
func scalar(size uint32) layout { return layout{size: size, align: max(size, 1)} }

// record lays out fields one after the other.
func record(fields ...layout) layout {
	l := layout{align: 1}
	for _, f := range fields {
		at := alignUp(l.size, f.align)
		l.offsets = append(l.offsets, at)
		l.size = at + f.size
		l.align = max(l.align, f.align)
	}
	l.size = alignUp(l.size, l.align)
	return l
}

// variant lays out a discriminant, which is one byte for up to 256 cases, and the payloads over one another. Cases whose
// payloads are the same may be left out.
func variant(cases ...layout) layout {
	widest := layout{align: 1}
	for _, c := range cases {
		widest.size = max(widest.size, c.size)
		widest.align = max(widest.align, c.align)
	}
	return record(layoutU8, widest)
}

func option(some layout) layout { return variant(layoutNone, some) }

func result(ok, err layout) layout { return variant(ok, err) }

// alignUp rounds n up to a multiple of align, a power of two.
func alignUp(n, align uint32) uint32 { return (n + align - 1) &^ (align - 1) }
