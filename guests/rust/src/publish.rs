use crate::abi::{self, returned, List, Maybe, Text};
use crate::message::{lift_pairs, lower_pairs, Fence, Message};
use crate::{Error, PublishError};
use alloc::{string::String, vec::Vec};
use core::sync::atomic::{AtomicU32, Ordering};

/// How a message is published. The default is: now, to anybody, once. Durations are milliseconds, times Unix milliseconds.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Invisible until then.
    pub delay: Option<u64>,
    /// Dead-lettered if undelivered so long after it became visible.
    pub ttl: Option<u64>,
    /// Dead-lettered instead of delivered after this time.
    pub deadline: Option<u64>,
    /// Higher is delivered first.
    pub priority: u8,
    /// A second publish with this key stores nothing.
    pub idempotency_key: Option<String>,
    /// Messages of one key are handled one at a time, in order.
    pub ordering_key: Option<String>,
    /// Drops a message that is older than another of the key.
    pub fence: Option<Fence>,
    /// What a consumer must declare to be given the message.
    pub required_features: Vec<String>,
    /// The only consumer that is given the message.
    pub target: Option<String>,
    /// In a batch handler: the id of the delivery with whose ack the message is committed.
    pub cause: Option<String>,
    /// For what the ABI doesn't have yet.
    pub extensions: Vec<(String, String)>,
}

/// One message of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub topic: &'a str,
    /// Only read: may be in a batch twice, and may be the delivered message.
    pub message: &'a Message,
    /// How; `None` is the default.
    pub options: Option<&'a Options>,
}

/// What the host gave for a message.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The message's id.
    pub id: String,
    /// The idempotency key was used before.
    pub duplicate: bool,
    /// For what the ABI doesn't have yet.
    pub extensions: Vec<(String, String)>,
}

impl Receipt {
    unsafe fn lift(r: abi::Receipt) -> Self {
        Receipt { id: r.id.text(), duplicate: r.duplicate != 0, extensions: lift_pairs(r.extensions) }
    }
}

/// The delivery's client, or 0.
static CLIENT: AtomicU32 = AtomicU32::new(0);

/// Opens the delivery's client at the first publish.
pub(crate) unsafe fn connect() -> Result<u32, Error> {
    let open = CLIENT.load(Ordering::Relaxed);
    if open != 0 {
        return Ok(open);
    }
    let name = "default";
    let answer = returned(|r| abi::connect(name.as_ptr(), name.len(), r));
    if answer.is_error != 0 {
        return Err(Error::lift(answer.value.error));
    }
    CLIENT.store(answer.value.ok, Ordering::Relaxed);
    Ok(answer.value.ok)
}

/// Closes the delivery's client.
pub(crate) unsafe fn disconnect() {
    let open = CLIENT.swap(0, Ordering::Relaxed);
    if open != 0 {
        abi::drop_client(open);
    }
}

/// Publishes a message when the handler has returned well. The host checks it now.
pub fn send(topic: &str, message: &Message) -> Result<(), Error> {
    unsafe {
        let client = connect()?;
        let m = message.lower();
        let answer = returned(|r| abi::send(client, topic.as_ptr(), topic.len(), m, r));
        if answer.is_error != 0 {
            return Err(Error::lift(answer.value.error));
        }
    }
    Ok(())
}

/// Publishes a message with options. It says more than `send`: an id, or why not.
pub fn publish(topic: &str, message: &Message, options: &Options) -> Result<Receipt, PublishError> {
    unsafe {
        let client = connect()?;
        let m = message.lower();
        let lowered = Lowered::of(options);
        let arguments =
            abi::Publish { client, topic: Text::of(topic.as_bytes()), message: m, options: Maybe::of(Some(lowered.view(options))) };
        let answer = returned(|r| abi::publish(&arguments, r));
        abi::drop_message(m);
        lift_one(answer)
    }
}

/// Publishes many messages in one call to the host. There is a result for each; some may be refused and the others accepted.
/// An error concerns the whole batch: none was accepted.
pub fn publish_batch(batch: &[Outgoing<'_>]) -> Result<Vec<Result<Receipt, PublishError>>, PublishError> {
    unsafe {
        let client = connect()?;
        let answer = with_batch(batch, |list| returned(|r| abi::publish_batch(client, list.as_ptr(), list.len(), r)));
        if answer.is_error != 0 {
            return Err(PublishError::lift(answer.value.error));
        }
        Ok(answer.value.ok.adopt().into_iter().map(|one| lift_one(one)).collect())
    }
}

/// Publishes many messages, or, if one of them is refused, none.
pub fn publish_atomic(batch: &[Outgoing<'_>]) -> Result<Vec<Receipt>, PublishError> {
    unsafe {
        let client = connect()?;
        let answer = with_batch(batch, |list| returned(|r| abi::publish_atomic(client, list.as_ptr(), list.len(), r)));
        if answer.is_error != 0 {
            return Err(PublishError::lift(answer.value.error));
        }
        Ok(answer.value.ok.adopt().into_iter().map(|r| Receipt::lift(r)).collect())
    }
}

unsafe fn lift_one(one: abi::One) -> Result<Receipt, PublishError> {
    if one.is_error != 0 {
        return Err(PublishError::lift(one.value.error));
    }
    Ok(Receipt::lift(one.value.ok))
}

/// Makes messages of the host's for a batch, calls the host, and drops them.
unsafe fn with_batch<T>(batch: &[Outgoing<'_>], call: impl FnOnce(&[abi::Outgoing]) -> T) -> T {
    let lowered: Vec<Option<Lowered>> = batch.iter().map(|o| o.options.map(Lowered::of)).collect();
    let list: Vec<abi::Outgoing> = (batch.iter().zip(&lowered))
        .map(|(o, l)| abi::Outgoing {
            topic: Text::of(o.topic.as_bytes()),
            message: o.message.lower(),
            options: Maybe::of(o.options.and_then(|options| l.as_ref().map(|l| l.view(options)))),
        })
        .collect();
    let result = call(&list);
    for o in &list {
        abi::drop_message(o.message);
    }
    result
}

/// The lists that options need in the ABI's layout.
struct Lowered {
    features: Vec<Text>,
    extensions: Vec<abi::Pair>,
}

impl Lowered {
    fn of(o: &Options) -> Self {
        let features = o.required_features.iter().map(|f| Text::of(f.as_bytes())).collect();
        Lowered { features, extensions: lower_pairs(&o.extensions) }
    }

    /// The options in the ABI's layout; both self and o must outlive the call.
    fn view(&self, o: &Options) -> abi::Options {
        let text = |t: &Option<String>| Maybe::of(t.as_ref().map(|t| Text::of(t.as_bytes())));
        abi::Options {
            delay: Maybe::of(o.delay),
            ttl: Maybe::of(o.ttl),
            deadline: Maybe::of(o.deadline),
            priority: o.priority,
            idempotency_key: text(&o.idempotency_key),
            ordering_key: text(&o.ordering_key),
            fence: Maybe::of(o.fence.as_ref().map(|f| abi::Fence { key: Text::of(f.key.as_bytes()), token: f.token })),
            required_features: List::of(&self.features),
            target: text(&o.target),
            cause: text(&o.cause),
            extensions: List::of(&self.extensions),
        }
    }
}
