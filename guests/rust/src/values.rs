use crate::abi::{self, returned};
use crate::Error;
use alloc::{string::String, string::ToString, vec::Vec};
use core::fmt;

/// Why a bucket didn't do what it was asked.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueError {
    /// The host knows no such bucket.
    NoSuchStore,
    /// The manifest doesn't grant the bucket.
    AccessDenied,
    /// Anything else, such as a bound that is exceeded.
    Other(String),
}

impl ValueError {
    unsafe fn lift(e: abi::ErrorCase) -> Self {
        match e.case {
            0 => ValueError::NoSuchStore,
            1 => ValueError::AccessDenied,
            _ => ValueError::Other(e.text.assume_init().text()),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::NoSuchStore => f.write_str("no-such-store"),
            ValueError::AccessDenied => f.write_str("access-denied"),
            ValueError::Other(t) => write!(f, "other: {}", t),
        }
    }
}

/// A handler may return it with `?`.
impl From<ValueError> for Error {
    fn from(e: ValueError) -> Self {
        match e {
            ValueError::AccessDenied => Error::PermissionDenied(e.to_string()),
            _ => Error::Other(e.to_string()),
        }
    }
}

#[cfg(feature = "std")]
impl std::error::Error for ValueError {}

/// A bucket of values, which belong to the consumer's tenant. Open it in the handler that uses it.
///
/// A handler is one transaction: it reads what it wrote, and what it wrote is stored when it has returned well, with what it
/// published, or not at all. If by then something that it read has changed, the host runs it again from the start.
#[derive(Debug)]
pub struct Bucket {
    handle: u32,
}

impl Bucket {
    /// Opens a bucket that the manifest grants.
    pub fn open(name: &str) -> Result<Bucket, ValueError> {
        let handle = unsafe { lift(returned(|r| abi::open(name.as_ptr(), name.len(), r)))? };
        Ok(Bucket { handle })
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ValueError> {
        unsafe {
            let value = lift(returned(|r| abi::get(self.handle, key.as_ptr(), key.len(), r)))?;
            Ok(value.get().map(|v| v.adopt()))
        }
    }

    /// Sets the value under a key of 1 to 256 bytes.
    pub fn set(&self, key: &str, value: &[u8]) -> Result<(), ValueError> {
        let (at, len) = (value.as_ptr(), value.len());
        unsafe { lift(returned(|r| abi::set(self.handle, key.as_ptr(), key.len(), at, len, r))).map(|_| ()) }
    }

    /// Deletes the value under a key, if there is one.
    pub fn delete(&self, key: &str) -> Result<(), ValueError> {
        unsafe { lift(returned(|r| abi::delete(self.handle, key.as_ptr(), key.len(), r))).map(|_| ()) }
    }

    /// Whether there is a value under a key.
    pub fn exists(&self, key: &str) -> Result<bool, ValueError> {
        unsafe { lift(returned(|r| abi::exists(self.handle, key.as_ptr(), key.len(), r))).map(|e| e != 0) }
    }

    /// All keys, in the order of their bytes. The host gives a few hundred at a time.
    pub fn keys(&self) -> Result<Vec<String>, ValueError> {
        let mut keys = Vec::new();
        let mut cursor = None;
        loop {
            let (some, after) = (cursor.is_some() as u32, cursor.unwrap_or(0));
            unsafe {
                let page = lift(returned(|r| abi::list_keys(self.handle, some, after, r)))?;
                keys.extend(page.keys.adopt().into_iter().map(|key| key.text()));
                cursor = page.cursor.get();
            }
            if cursor.is_none() {
                return Ok(keys);
            }
        }
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        unsafe { abi::drop_bucket(self.handle) }
    }
}

/// The value of an answer, or its error.
unsafe fn lift<T: Copy>(answer: abi::Answer<T, abi::ErrorCase>) -> Result<T, ValueError> {
    if answer.is_error != 0 {
        return Err(ValueError::lift(answer.value.error));
    }
    Ok(answer.value.ok)
}

/// What the manifest says for a key under config.
pub fn config(key: &str) -> Option<String> {
    unsafe {
        let answer = returned(|r| abi::config(key.as_ptr(), key.len(), r));
        if answer.is_error != 0 {
            return None; // of a host that reads its configuration from elsewhere
        }
        answer.value.ok.get().map(|t| t.text())
    }
}
