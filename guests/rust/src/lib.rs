//! Message consumers for a Longshore host.
//!
//! ```ignore
//! use longshore::{send, Error, Message};
//!
//! longshore::handler!(shout);
//!
//! fn shout(m: &Message) -> Result<(), Error> {
//!     send("shouts", &Message::new(m.data.to_ascii_uppercase()))
//! }
//! ```
//!
//! Build it as a `cdylib` for `wasm32-unknown-unknown`. The crate itself needs `alloc` only. With the feature `std`, which is the
//! default, panics are logged; a consumer without `std` turns that off, and brings an allocator and a panic handler.
//!
//! What a handler publishes is committed when it has returned `Ok`, together with the acknowledgement. A handler that
//! returns an error, panics, or is stopped by a limit has published nothing. Each message meets the module as it was before
//! its first one, unless the manifest says otherwise: keep nothing in statics.
//!
//! | file | |
//! |---|---|
//! | `abi.rs` | imports, layouts, memory |
//! | `message.rs` | messages, and what is known of a delivery |
//! | `publish.rs` | `send`, `publish`, `publish_batch`, `publish_atomic` |
//! | `request.rs` | `request` and `reply` |
//! | `values.rs` | buckets of values, and configuration |
//! | `error.rs` | what can go wrong, and how a handler says so |
//! | `outcome.rs` | explicit outcomes |
//! | `export.rs` | the macros that make a function the module's handler |
//! | `log.rs` | the tenant's log |
#![no_std]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[doc(hidden)]
pub mod abi;
mod error;
#[doc(hidden)]
pub mod export;
mod log;
mod message;
mod outcome;
mod publish;
mod request;
mod values;

pub use error::{Error, Limit, LimitKind, PublishError};
pub use log::{log, Level};
pub use message::{delivery, draining, time_left_millis, Claims, Delivery, Fence, Message};
pub use outcome::Outcome;
pub use publish::{publish, publish_atomic, publish_batch, send, Options, Outgoing, Receipt};
pub use request::{reply, request, RequestOptions};
pub use values::{config, Bucket, ValueError};
