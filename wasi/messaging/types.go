package messaging

// The types of the WIT that cross the border through memory, in the order of their declaration there.
var (
	u8Shape     = scalarOf(1)
	u32Shape    = scalarOf(4)
	u64Shape    = scalarOf(8)
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

	// longshore:messaging/types.
	fenceShape          = recordOf(field{name: "key", shape: textShape}, field{name: "token", shape: u64Shape})
	publishOptionsShape = recordOf(
		field{name: "delay", shape: optionOf(u64Shape)},
		field{name: "ttl", shape: optionOf(u64Shape)},
		field{name: "deadline", shape: optionOf(u64Shape)},
		field{name: "priority", shape: u8Shape},
		field{name: "idempotency-key", shape: optionTextShape},
		field{name: "ordering-key", shape: optionTextShape},
		field{name: "fence", shape: optionOf(fenceShape)},
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
		field{name: "retry-after", shape: optionOf(u64Shape)},
		field{name: "extensions", shape: extensionsShape},
	)
	publishErrorShape = variantOf(
		limitShape, limitShape, limitShape, limitShape, limitShape, limitShape,
		textShape, textShape, textShape, shape{}, textShape,
	)
	receiptShape = recordOf(
		field{name: "id", shape: textShape},
		field{name: "duplicate", shape: u8Shape},
		field{name: "extensions", shape: extensionsShape},
	)

	// longshore:messaging/publisher.
	publishArgsShape = recordOf(
		field{name: "client", shape: handleShape},
		field{name: "topic", shape: textShape},
		field{name: "message", shape: handleShape},
		field{name: "options", shape: optionPublishOptionsShape},
	)
	receiptResultShape = variantOf(receiptShape, publishErrorShape)
	batchResultShape   = variantOf(listShape(), publishErrorShape)
)

// Offsets that host functions use, looked up once.
var (
	pairKeyAt             = pairShape.at("key")
	pairValueAt           = pairShape.at("value")
	outgoingTopicAt       = outgoingShape.at("topic")
	outgoingMessageAt     = outgoingShape.at("message")
	outgoingOptionsAt     = outgoingShape.at("options")
	argsClientAt          = publishArgsShape.at("client")
	argsTopicAt           = publishArgsShape.at("topic")
	argsMessageAt         = publishArgsShape.at("message")
	argsOptionsAt         = publishArgsShape.at("options")
	limitLimitAt          = limitShape.at("limit")
	limitActualAt         = limitShape.at("actual")
	limitRetryAfterAt     = limitShape.at("retry-after")
	limitExtensionsAt     = limitShape.at("extensions")
	receiptIDAt           = receiptShape.at("id")
	receiptExtensionsAt   = receiptShape.at("extensions")
	optionMillisPayloadAt = optionOf(u64Shape).payload
)
