package messaging

// The types of the WIT that cross the border through memory, in the order of their declaration there.
var (
	u8Shape     = scalarOf(1)
	u32Shape    = scalarOf(4)
	u64Shape    = scalarOf(8)
	boolShape   = u8Shape
	handleShape = u32Shape
	textShape   = listShape()

	pairShape       = recordOf(field{name: "key", shape: textShape}, field{name: "value", shape: textShape})
	extensionsShape = listShape()

	// wasi:messaging/types.
	optionTextShape   = optionOf(textShape)
	optionListShape   = optionOf(listShape())
	errorShape        = variantOf(shape{}, textShape, textShape, textShape)
	unitResultShape   = variantOf(shape{}, errorShape)
	clientResultShape = variantOf(handleShape, errorShape)

	// wasi:messaging/request-reply.
	messagesResultShape = variantOf(listShape(), errorShape)

	// longshore:messaging/types.
	optionU64Shape      = optionOf(u64Shape)
	fenceShape          = recordOf(field{name: "key", shape: textShape}, field{name: "token", shape: u64Shape})
	optionFenceShape    = optionOf(fenceShape)
	publishOptionsShape = recordOf(
		field{name: "delay", shape: optionU64Shape},
		field{name: "ttl", shape: optionU64Shape},
		field{name: "deadline", shape: optionU64Shape},
		field{name: "priority", shape: u8Shape},
		field{name: "idempotency-key", shape: optionTextShape},
		field{name: "ordering-key", shape: optionTextShape},
		field{name: "fence", shape: optionFenceShape},
		field{name: "required-features", shape: listShape()},
		field{name: "target", shape: optionTextShape},
		field{name: "cause", shape: optionTextShape},
		field{name: "extensions", shape: extensionsShape},
	)
	optionPublishOptionsShape = optionOf(publishOptionsShape)
	outgoingShape             = recordOf(
		field{name: "topic", shape: textShape},
		field{name: "message", shape: handleShape},
		field{name: "options", shape: optionPublishOptionsShape},
	)
	limitShape = recordOf(
		field{name: "limit", shape: u64Shape},
		field{name: "actual", shape: u64Shape},
		field{name: "retry-after", shape: optionU64Shape},
		field{name: "extensions", shape: extensionsShape},
	)
	publishErrorShape = variantOf(
		limitShape, limitShape, limitShape, limitShape, limitShape, limitShape,
		textShape, textShape, textShape, shape{}, textShape,
	)
	receiptShape = recordOf(
		field{name: "id", shape: textShape},
		field{name: "duplicate", shape: boolShape},
		field{name: "extensions", shape: extensionsShape},
	)
	claimsShape = recordOf(
		field{name: "tenant", shape: textShape},
		field{name: "subject", shape: textShape},
		field{name: "issuer", shape: textShape},
		field{name: "token-id", shape: textShape},
		field{name: "issued-at", shape: u64Shape},
		field{name: "extra", shape: listShape()},
		field{name: "extensions", shape: extensionsShape},
	)
	deliveryInfoShape = recordOf(
		field{name: "id", shape: textShape},
		field{name: "topic", shape: textShape},
		field{name: "attempt", shape: u32Shape},
		field{name: "max-attempts", shape: u32Shape},
		field{name: "previous-reason", shape: optionTextShape},
		field{name: "group", shape: optionTextShape},
		field{name: "published-at", shape: u64Shape},
		field{name: "expires-at", shape: optionU64Shape},
		field{name: "deadline", shape: optionU64Shape},
		field{name: "priority", shape: u8Shape},
		field{name: "idempotency-key", shape: optionTextShape},
		field{name: "ordering-key", shape: optionTextShape},
		field{name: "fence", shape: optionFenceShape},
		field{name: "parent", shape: optionTextShape},
		field{name: "hops", shape: u32Shape},
		field{name: "claims", shape: optionOf(claimsShape)},
		field{name: "trace", shape: listShape()},
		field{name: "extensions", shape: extensionsShape},
	)
	optionDeliveryInfoShape = optionOf(deliveryInfoShape)
	outcomeShape            = variantOf(shape{}, optionU64Shape, textShape, shape{})

	// longshore:messaging/publisher.
	publishArgsShape = recordOf(
		field{name: "client", shape: handleShape},
		field{name: "topic", shape: textShape},
		field{name: "message", shape: handleShape},
		field{name: "options", shape: optionPublishOptionsShape},
	)
	receiptResultShape = variantOf(receiptShape, publishErrorShape)
	batchResultShape   = variantOf(listShape(), publishErrorShape)

	// longshore:messaging/batch-handler.
	outcomesResultShape = variantOf(listShape(), errorShape)

	// wasmcloud:messaging of 0.2.0.
	brokerMessageShape = recordOf(
		field{name: "subject", shape: textShape},
		field{name: "body", shape: listShape()},
		field{name: "reply-to", shape: optionTextShape},
	)
	brokerResultShape = variantOf(brokerMessageShape, textShape)
	textErrorShape    = variantOf(shape{}, textShape) // result<_, string>

	// wasi:config/store.
	configErrorShape  = variantOf(textShape, textShape)
	configResultShape = variantOf(optionTextShape, configErrorShape)
	configAllShape    = variantOf(listShape(), configErrorShape)

	// wasi:keyvalue/store.
	storeErrorShape  = variantOf(shape{}, shape{}, textShape)
	keyResponseShape = recordOf(
		field{name: "keys", shape: listShape()},
		field{name: "cursor", shape: optionU64Shape},
	)
	keyResponseShape2 = recordOf( // of draft2
		field{name: "keys", shape: listShape()},
		field{name: "cursor", shape: optionTextShape},
	)
	bucketResultShape = variantOf(handleShape, storeErrorShape)
	valueResultShape  = variantOf(optionListShape, storeErrorShape)
	storedResultShape = variantOf(shape{}, storeErrorShape)
	existsResultShape = variantOf(boolShape, storeErrorShape)
	keysResultShape   = variantOf(keyResponseShape, storeErrorShape)
	keysResultShape2  = variantOf(keyResponseShape2, storeErrorShape)
)

// Offsets that host functions use, looked up once.
var (
	pairKeyAt           = pairShape.at("key")
	pairValueAt         = pairShape.at("value")
	outgoingTopicAt     = outgoingShape.at("topic")
	outgoingMessageAt   = outgoingShape.at("message")
	outgoingOptionsAt   = outgoingShape.at("options")
	argsClientAt        = publishArgsShape.at("client")
	argsTopicAt         = publishArgsShape.at("topic")
	argsMessageAt       = publishArgsShape.at("message")
	argsOptionsAt       = publishArgsShape.at("options")
	limitLimitAt        = limitShape.at("limit")
	limitActualAt       = limitShape.at("actual")
	limitRetryAfterAt   = limitShape.at("retry-after")
	limitExtensionsAt   = limitShape.at("extensions")
	receiptIDAt         = receiptShape.at("id")
	receiptDuplicateAt  = receiptShape.at("duplicate")
	receiptExtensionsAt = receiptShape.at("extensions")
	keysAt              = keyResponseShape.at("keys")
	cursorAt            = keyResponseShape.at("cursor")
	keysAt2             = keyResponseShape2.at("keys")
	cursorAt2           = keyResponseShape2.at("cursor")
	fenceKeyAt          = fenceShape.at("key")
	fenceTokenAt        = fenceShape.at("token")
)
