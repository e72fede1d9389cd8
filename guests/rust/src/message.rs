use crate::abi::{self, returned};
use alloc::{string::String, vec::Vec};

/// A message that was delivered or is to be published. Publishing ignores the topic.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Where a delivered message came from.
    pub topic: String,
    /// A media type, or empty.
    pub content_type: String,
    /// The payload.
    pub data: Vec<u8>,
    /// The applications' own.
    pub metadata: Vec<(String, String)>,
    /// The host's, of a delivered message; else 0.
    #[doc(hidden)]
    pub handle: u32,
}

impl Message {
    /// A message with this payload.
    pub fn new(data: impl Into<Vec<u8>>) -> Self {
        Message { data: data.into(), ..Message::default() }
    }

    /// The same message with a content type.
    pub fn with_content_type(mut self, content_type: &str) -> Self {
        self.content_type = content_type.into();
        self
    }

    /// The same message with one more entry of metadata.
    pub fn with_metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Reads a delivered message from the host.
    pub(crate) unsafe fn lift(handle: u32) -> Self {
        let topic = returned(|r| abi::topic(handle, r)).get();
        let content_type = returned(|r| abi::content_type(handle, r)).get();
        let data = returned(|r| abi::data(handle, r));
        let metadata = returned(|r| abi::metadata(handle, r)).get();
        Message {
            topic: topic.map(|t| t.text()).unwrap_or_default(),
            content_type: content_type.map(|t| t.text()).unwrap_or_default(),
            data: data.adopt(),
            metadata: metadata.map(|m| lift_pairs(m)).unwrap_or_default(),
            handle,
        }
    }

    /// Makes a message of the host's, and returns its handle.
    pub(crate) unsafe fn lower(&self) -> u32 {
        let handle = abi::new_message(self.data.as_ptr(), self.data.len());
        if !self.content_type.is_empty() {
            abi::set_content_type(handle, self.content_type.as_ptr(), self.content_type.len());
        }
        if !self.metadata.is_empty() {
            let pairs = lower_pairs(&self.metadata);
            abi::set_metadata(handle, pairs.as_ptr(), pairs.len());
        }
        handle
    }
}

pub(crate) fn lower_pairs(pairs: &[(String, String)]) -> Vec<abi::Pair> {
    let lower = |(k, v): &(String, String)| abi::Pair { key: abi::Text::of(k.as_bytes()), value: abi::Text::of(v.as_bytes()) };
    pairs.iter().map(lower).collect()
}

pub(crate) unsafe fn lift_pairs(pairs: abi::List<abi::Pair>) -> Vec<(String, String)> {
    pairs.adopt().into_iter().map(|p| (p.key.text(), p.value.text())).collect()
}

/// Drops a message whose token is lower than the highest one seen for the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// What is guarded.
    pub key: String,
    /// Who may.
    pub token: u64,
}

/// Who published a message: its signed context, which the host has verified.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Claims {
    pub tenant: String,
    pub subject: String,
    pub issuer: String,
    pub token_id: String,
    /// Unix milliseconds.
    pub issued_at: u64,
    pub extra: Vec<(String, String)>,
    pub extensions: Vec<(String, String)>,
}

/// What a message doesn't say of its delivery. Times are Unix milliseconds.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Delivery {
    pub id: String,
    pub topic: String,
    /// 1 for the first.
    pub attempt: u32,
    pub max_attempts: u32,
    /// Why the previous attempt failed.
    pub previous_reason: Option<String>,
    pub group: Option<String>,
    pub published_at: u64,
    pub expires_at: Option<u64>,
    pub deadline: Option<u64>,
    pub priority: u8,
    pub idempotency_key: Option<String>,
    pub ordering_key: Option<String>,
    pub fence: Option<Fence>,
    /// The message whose handling published this one.
    pub parent: Option<String>,
    /// How long the chain of parents is.
    pub hops: u32,
    pub claims: Option<Claims>,
    /// traceparent and tracestate.
    pub trace: Vec<(String, String)>,
    pub extensions: Vec<(String, String)>,
}

/// The details of the delivery; `None` for a message that the handler made itself.
pub fn delivery(m: &Message) -> Option<Delivery> {
    if m.handle == 0 {
        return None;
    }
    unsafe { returned(|r| abi::info(m.handle, r)).get().map(|d| lift_delivery(d)) }
}

unsafe fn lift_delivery(d: abi::Delivery) -> Delivery {
    let text = |t: abi::Maybe<abi::Text>| t.get().map(|t| t.text());
    Delivery {
        id: d.id.text(),
        topic: d.topic.text(),
        attempt: d.attempt,
        max_attempts: d.max_attempts,
        previous_reason: text(d.previous_reason),
        group: text(d.group),
        published_at: d.published_at,
        expires_at: d.expires_at.get(),
        deadline: d.deadline.get(),
        priority: d.priority,
        idempotency_key: text(d.idempotency_key),
        ordering_key: text(d.ordering_key),
        fence: d.fence.get().map(|f| Fence { key: f.key.text(), token: f.token }),
        parent: text(d.parent),
        hops: d.hops,
        claims: d.claims.get().map(|c| lift_claims(c)),
        trace: lift_pairs(d.trace),
        extensions: lift_pairs(d.extensions),
    }
}

unsafe fn lift_claims(c: abi::Claims) -> Claims {
    Claims {
        tenant: c.tenant.text(),
        subject: c.subject.text(),
        issuer: c.issuer.text(),
        token_id: c.token_id.text(),
        issued_at: c.issued_at,
        extra: lift_pairs(c.extra),
        extensions: lift_pairs(c.extensions),
    }
}

/// How many milliseconds are left for this call.
pub fn time_left_millis() -> u64 {
    unsafe { abi::time_left() }
}

/// Whether the host is stopping: finish what is begun, skip the rest.
pub fn draining() -> bool {
    unsafe { abi::draining() != 0 }
}
