//! The conformance guests are this crate's examples.
