use crate::abi::{self, Either, Maybe, Text};
use alloc::string::String;
use core::mem::MaybeUninit;

/// What the host does with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done: what was published is committed.
    Ack,
    /// Deliver it again, not before so many milliseconds; this attempt counts.
    Retry(Option<u64>),
    /// A dead letter now. The text goes to the tenant's log.
    Reject(String),
    /// Not touched: deliver it again; this attempt doesn't count.
    Skip,
}

impl Outcome {
    /// The text stays in memory until the host has read it: the caller keeps the outcome.
    pub(crate) fn lower(&self) -> abi::Outcome {
        let (case, value) = match self {
            Outcome::Ack => (0, MaybeUninit::uninit()),
            Outcome::Retry(delay) => (1, MaybeUninit::new(Either { ok: Maybe::of(*delay) })),
            Outcome::Reject(text) => (2, MaybeUninit::new(Either { error: Text::of(text.as_bytes()) })),
            Outcome::Skip => (3, MaybeUninit::uninit()),
        };
        abi::Outcome { case, value }
    }
}
