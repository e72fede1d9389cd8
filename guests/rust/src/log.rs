use crate::abi;

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Level {
    /// Every step.
    Trace,
    /// For whoever debugs the consumer.
    Debug,
    /// What happened.
    Info,
    /// What may be wrong.
    Warn,
    /// What is wrong.
    Error,
    /// What ends the handler.
    Critical,
}

/// Writes a line to the tenant's log.
pub fn log(level: Level, text: &str) {
    unsafe { abi::log(level as u32, text.as_ptr(), 0, text.as_ptr(), text.len()) }
}
