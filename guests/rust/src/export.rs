//! The macros that make a function the module's handler, and what they call.

use crate::abi::{self, Answer, Either, List};
use crate::{publish, Error, Message, Outcome};
use alloc::{boxed::Box, vec::Vec};

/// Makes a `fn(&Message) -> Result<(), Error>` the module's handler. A module has one handler.
#[macro_export]
macro_rules! handler {
    ($h:path) => {
        $crate::__exports!("cabi_post_wasi:messaging/incoming-handler@0.2.0-draft#handle", $crate::abi::Unit, free_unit);
        #[export_name = "wasi:messaging/incoming-handler@0.2.0-draft#handle"]
        unsafe extern "C" fn __longshore_handle(message: u32) -> *const $crate::abi::Unit {
            $crate::export::handle(message, $h)
        }
    };
}

/// Makes a `fn(&Message) -> Outcome` the module's handler, which decides what becomes of each message.
#[macro_export]
macro_rules! outcome_handler {
    ($h:path) => {
        $crate::__exports!("cabi_post_longshore:messaging/outcome-handler@0.1.0#handle", $crate::abi::Outcome, free_outcome);
        #[export_name = "longshore:messaging/outcome-handler@0.1.0#handle"]
        unsafe extern "C" fn __longshore_handle(message: u32) -> *const $crate::abi::Outcome {
            $crate::export::decide(message, $h)
        }
    };
}

/// Makes a `fn(&[Message]) -> Result<Vec<Outcome>, Error>` the module's handler, which is called with batches. There is to be
/// an outcome for each message; the last ones, if they are missing, are `Skip`. An error retries, and charges, all.
#[macro_export]
macro_rules! batch_handler {
    ($h:path) => {
        $crate::__exports!(
            "cabi_post_longshore:messaging/batch-handler@0.1.0#handle-batch",
            $crate::abi::Outcomes,
            free_outcomes
        );
        #[export_name = "longshore:messaging/batch-handler@0.1.0#handle-batch"]
        unsafe extern "C" fn __longshore_handle(messages: *mut u32, count: usize) -> *const $crate::abi::Outcomes {
            $crate::export::handle_batch(messages, count, $h)
        }
    };
}

/// What every kind of handler exports beside itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __exports {
    ($post:literal, $answer:ty, $free:ident) => {
        #[export_name = "cabi_realloc"]
        unsafe extern "C" fn __longshore_realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
            $crate::abi::realloc(old, old_size, align, size)
        }
        #[export_name = $post]
        unsafe extern "C" fn __longshore_post(answer: *mut $answer) {
            $crate::export::$free(answer)
        }
    };
}

/// What the host reads, followed by what keeps its texts in memory. The address of the first field is given to the host, and
/// comes back when it has read it.
#[repr(C)]
struct Kept<A, O> {
    answer: A,
    owner: O,
}

fn keep<A, O>(answer: A, owner: O) -> *const A {
    Box::into_raw(Box::new(Kept { answer, owner })) as *const A
}

unsafe fn free<A, O>(answer: *mut A) {
    drop(Box::from_raw(answer as *mut Kept<A, O>));
}

type UnitOwner = Option<Error>;
type BatchOwner = (Vec<abi::Outcome>, Vec<Outcome>, Option<Error>);

pub unsafe fn free_unit(answer: *mut abi::Unit) {
    free::<_, UnitOwner>(answer)
}

pub unsafe fn free_outcome(answer: *mut abi::Outcome) {
    free::<_, Outcome>(answer)
}

pub unsafe fn free_outcomes(answer: *mut abi::Outcomes) {
    free::<_, BatchOwner>(answer)
}

/// Begins a delivery.
fn begin() {
    #[cfg(feature = "std")]
    std::panic::set_hook(Box::new(|p| crate::log(crate::Level::Critical, &std::string::ToString::to_string(p))));
}

/// Ends a delivery: its handles go.
unsafe fn end(messages: &[Message]) {
    for m in messages {
        abi::drop_message(m.handle);
    }
    publish::disconnect();
}

fn unit<T: Copy>(error: &Error) -> Answer<T, abi::ErrorCase> {
    Answer { is_error: 1, value: Either { error: error.lower() } }
}

pub unsafe fn handle(message: u32, handler: fn(&Message) -> Result<(), Error>) -> *const abi::Unit {
    begin();
    let m = [Message::lift(message)];
    let result = handler(&m[0]);
    end(&m);
    let owner: UnitOwner = result.err();
    let answer = match &owner {
        None => Answer { is_error: 0, value: Either { ok: 0 } },
        Some(e) => unit(e),
    };
    keep(answer, owner)
}

pub unsafe fn decide(message: u32, handler: fn(&Message) -> Outcome) -> *const abi::Outcome {
    begin();
    let m = [Message::lift(message)];
    let owner = handler(&m[0]);
    end(&m);
    keep(owner.lower(), owner)
}

pub unsafe fn handle_batch(
    messages: *mut u32, count: usize, handler: fn(&[Message]) -> Result<Vec<Outcome>, Error>,
) -> *const abi::Outcomes {
    begin();
    let messages: Vec<Message> = List { ptr: messages, len: count }.adopt().into_iter().map(|h| Message::lift(h)).collect();
    let result = handler(&messages);
    end(&messages);
    match result {
        Ok(outcomes) => {
            let lowered: Vec<abi::Outcome> = outcomes.iter().map(Outcome::lower).collect();
            let answer = Answer { is_error: 0, value: Either { ok: List::of(&lowered) } };
            keep::<_, BatchOwner>(answer, (lowered, outcomes, None))
        }
        Err(e) => keep::<_, BatchOwner>(unit(&e), (Vec::new(), Vec::new(), Some(e))),
    }
}
