use crate::abi;
use alloc::{format, string::String, string::ToString};
use core::fmt;
use core::mem::MaybeUninit;

/// An error that the host understands: `send` returns it, and a handler can. The host retries the message and finally
/// dead-letters it with the reason `guest-error: <case>`; the text goes to the tenant's log.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// Something took too long.
    Timeout,
    /// Something can't be reached.
    Connection(String),
    /// Something isn't allowed.
    PermissionDenied(String),
    /// Anything else.
    Other(String),
}

impl Error {
    /// The name of the case in the WIT.
    pub fn case(&self) -> &'static str {
        match self {
            Error::Timeout => "timeout",
            Error::Connection(_) => "connection",
            Error::PermissionDenied(_) => "permission-denied",
            Error::Other(_) => "other",
        }
    }

    pub(crate) unsafe fn lift(e: abi::ErrorCase) -> Self {
        match e.case {
            0 => Error::Timeout,
            1 => Error::Connection(e.text.assume_init().text()),
            2 => Error::PermissionDenied(e.text.assume_init().text()),
            _ => Error::Other(e.text.assume_init().text()),
        }
    }

    /// The text stays in memory until the host has read it: the caller keeps the error.
    pub(crate) fn lower(&self) -> abi::ErrorCase {
        let (case, text) = match self {
            Error::Timeout => (0, ""),
            Error::Connection(t) => (1, t.as_str()),
            Error::PermissionDenied(t) => (2, t.as_str()),
            Error::Other(t) => (3, t.as_str()),
        };
        abi::ErrorCase { case, text: MaybeUninit::new(abi::Text::of(text.as_bytes())) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Timeout => f.write_str(self.case()),
            Error::Connection(t) | Error::PermissionDenied(t) | Error::Other(t) => write!(f, "{}: {}", self.case(), t),
        }
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Error::Other(text)
    }
}

impl From<&str> for Error {
    fn from(text: &str) -> Self {
        Error::Other(text.into())
    }
}

/// Which limit a publish would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LimitKind {
    /// The topic's backlog is full; in messages.
    DepthExceeded,
    /// Over the topic's or the tenant's rate; in messages a second.
    RateExceeded,
    /// A message, or the batch, is too large; in bytes.
    TooLarge,
    /// This delivery has published all that it may; in messages or bytes.
    QuotaExceeded,
    /// The chain of causes is too long; in messages.
    HopLimit,
    /// The host's disk is full; in bytes.
    StorageFull,
}

impl LimitKind {
    const ALL: [LimitKind; 6] = [
        LimitKind::DepthExceeded, LimitKind::RateExceeded, LimitKind::TooLarge, LimitKind::QuotaExceeded, LimitKind::HopLimit,
        LimitKind::StorageFull,
    ];

    /// The name of the case in the WIT.
    pub fn case(self) -> &'static str {
        ["depth-exceeded", "rate-exceeded", "too-large", "quota-exceeded", "hop-limit", "storage-full"][self as usize]
    }
}

/// A limit that was hit, in the unit of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The bound.
    pub limit: u64,
    /// What the publish would have made it.
    pub actual: u64,
    /// When to try again, if that is known.
    pub retry_after_millis: Option<u64>,
}

/// Why a publish was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishError {
    /// A limit.
    Limit(LimitKind, Limit),
    /// The consumer isn't granted the topic.
    Unauthorized(String),
    /// The message, its topic or an option isn't acceptable.
    Invalid(String),
    /// Not now, for another reason.
    Unavailable(String),
    /// Took too long.
    Timeout,
    /// Anything else.
    Other(String),
}

impl PublishError {
    pub(crate) unsafe fn lift(e: abi::PublishError) -> Self {
        if let Some(kind) = LimitKind::ALL.get(e.case as usize) {
            let l = e.value.assume_init().ok;
            crate::message::lift_pairs(l.extensions);
            let limit = Limit { limit: l.limit, actual: l.actual, retry_after_millis: l.retry_after.get() };
            return PublishError::Limit(*kind, limit);
        }
        let text = || e.value.assume_init().error.text();
        match e.case {
            6 => PublishError::Unauthorized(text()),
            7 => PublishError::Invalid(text()),
            8 => PublishError::Unavailable(text()),
            9 => PublishError::Timeout,
            _ => PublishError::Other(text()),
        }
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishError::Limit(kind, l) => write!(f, "{}: {} is over the limit of {}", kind.case(), l.actual, l.limit),
            PublishError::Unauthorized(t) => write!(f, "unauthorized: {}", t),
            PublishError::Invalid(t) => write!(f, "invalid: {}", t),
            PublishError::Unavailable(t) => write!(f, "unavailable: {}", t),
            PublishError::Timeout => f.write_str("timeout"),
            PublishError::Other(t) => write!(f, "other: {}", t),
        }
    }
}

/// A handler may return a refusal with `?`: it becomes the case that is nearest.
impl From<PublishError> for Error {
    fn from(e: PublishError) -> Self {
        match e {
            PublishError::Unauthorized(_) => Error::PermissionDenied(e.to_string()),
            PublishError::Timeout => Error::Timeout,
            PublishError::Unavailable(_) => Error::Connection(e.to_string()),
            _ => Error::Other(format!("{}", e)),
        }
    }
}

impl From<Error> for PublishError {
    fn from(e: Error) -> Self {
        match e {
            Error::Timeout => PublishError::Timeout,
            Error::PermissionDenied(t) => PublishError::Unauthorized(t),
            Error::Connection(t) => PublishError::Unavailable(t),
            Error::Other(t) => PublishError::Other(t),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for Error {}
#[cfg(feature = "std")]
impl std::error::Error for PublishError {}
