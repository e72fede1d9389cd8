//! Imports, and the layouts of the canonical ABI, which are those of C on this target.

use alloc::{string::String, vec::Vec};
use core::alloc::Layout;
use core::mem::MaybeUninit;

/// Bytes, a text, or a list of `T`: an address and a count.
#[repr(C)]
pub struct List<T> {
    pub ptr: *mut T,
    pub len: usize,
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for List<T> {}

impl<T> List<T> {
    /// A view of a slice, which must outlive the call to the host.
    pub fn of(items: &[T]) -> Self {
        List { ptr: items.as_ptr() as *mut T, len: items.len() }
    }

    /// Adopts what the host wrote into memory that it asked for.
    pub unsafe fn adopt(self) -> Vec<T> {
        if self.len == 0 {
            return Vec::new();
        }
        Vec::from_raw_parts(self.ptr, self.len, self.len)
    }
}

pub type Text = List<u8>;

impl Text {
    pub unsafe fn text(self) -> String {
        match String::from_utf8(self.adopt()) {
            Ok(s) => s,
            Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pair {
    pub key: Text,
    pub value: Text,
}

/// An option, or a result without an error's payload: a discriminant, then the payload if it is 1.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Maybe<T: Copy> {
    pub is_some: u8,
    pub value: MaybeUninit<T>,
}

impl<T: Copy> Maybe<T> {
    pub fn of(value: Option<T>) -> Self {
        match value {
            Some(v) => Maybe { is_some: 1, value: MaybeUninit::new(v) },
            None => Maybe { is_some: 0, value: MaybeUninit::uninit() },
        }
    }

    pub unsafe fn get(self) -> Option<T> {
        if self.is_some == 0 {
            return None;
        }
        Some(self.value.assume_init())
    }
}

/// A result: `error` says which of the two payloads is there.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Answer<T: Copy, E: Copy> {
    pub is_error: u8,
    pub value: Either<T, E>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union Either<T: Copy, E: Copy> {
    pub ok: T,
    pub error: E,
}

/// wasi:messaging's error.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ErrorCase {
    pub case: u8,
    pub text: MaybeUninit<Text>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Fence {
    pub key: Text,
    pub token: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    pub delay: Maybe<u64>,
    pub ttl: Maybe<u64>,
    pub deadline: Maybe<u64>,
    pub priority: u8,
    pub idempotency_key: Maybe<Text>,
    pub ordering_key: Maybe<Text>,
    pub fence: Maybe<Fence>,
    pub required_features: List<Text>,
    pub target: Maybe<Text>,
    pub cause: Maybe<Text>,
    pub extensions: List<Pair>,
}

#[repr(C)]
pub struct Outgoing {
    pub topic: Text,
    pub message: u32,
    pub options: Maybe<Options>,
}

#[repr(C)]
pub struct Publish {
    pub client: u32,
    pub topic: Text,
    pub message: u32,
    pub options: Maybe<Options>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Limit {
    pub limit: u64,
    pub actual: u64,
    pub retry_after: Maybe<u64>,
    pub extensions: List<Pair>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PublishError {
    pub case: u8,
    pub value: MaybeUninit<Either<Limit, Text>>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Receipt {
    pub id: Text,
    pub duplicate: u8,
    pub extensions: List<Pair>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Claims {
    pub tenant: Text,
    pub subject: Text,
    pub issuer: Text,
    pub token_id: Text,
    pub issued_at: u64,
    pub extra: List<Pair>,
    pub extensions: List<Pair>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Delivery {
    pub id: Text,
    pub topic: Text,
    pub attempt: u32,
    pub max_attempts: u32,
    pub previous_reason: Maybe<Text>,
    pub group: Maybe<Text>,
    pub published_at: u64,
    pub expires_at: Maybe<u64>,
    pub deadline: Maybe<u64>,
    pub priority: u8,
    pub idempotency_key: Maybe<Text>,
    pub ordering_key: Maybe<Text>,
    pub fence: Maybe<Fence>,
    pub parent: Maybe<Text>,
    pub hops: u32,
    pub claims: Maybe<Claims>,
    pub trace: List<Pair>,
    pub extensions: List<Pair>,
}

#[repr(C)]
pub struct Outcome {
    pub case: u8,
    pub value: MaybeUninit<Either<Maybe<u64>, Text>>,
}

/// A result without a value; the byte is not read.
pub type Unit = Answer<u8, ErrorCase>;
pub type Outcomes = Answer<List<Outcome>, ErrorCase>;
pub type One = Answer<Receipt, PublishError>;
pub type Batch = Answer<List<One>, PublishError>;
pub type Atomic = Answer<List<Receipt>, PublishError>;
pub type Replies = Answer<List<u32>, ErrorCase>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Page {
    pub keys: List<Text>,
    pub cursor: Maybe<u64>,
}

/// wasi:keyvalue's results; their error has the layout of wasi:messaging's, and other cases.
pub type Opened = Answer<u32, ErrorCase>;
pub type Value = Answer<Maybe<Text>, ErrorCase>;
pub type Existence = Answer<u8, ErrorCase>;
pub type Keys = Answer<Page, ErrorCase>;

/// Fails to compile if a type isn't as large as the canonical ABI says.
macro_rules! sizes {
    ($($t:ty = $n:expr),* $(,)?) => { $(#[cfg(target_arch = "wasm32")] const _: () = assert!(core::mem::size_of::<$t>() == $n);)* };
}
sizes! {
    Text = 8, Pair = 16, Maybe<Text> = 12, ErrorCase = 12, Unit = 16, Answer<u32, ErrorCase> = 16, Fence = 16,
    Options = 144, Maybe<Options> = 152, Outgoing = 168, Publish = 168, Limit = 40, PublishError = 48, Receipt = 20,
    One = 56, Batch = 56, Atomic = 56, Claims = 56, Delivery = 240, Maybe<Delivery> = 248, Outcome = 24, Outcomes = 16,
    Replies = 16, Value = 16, Existence = 16, Keys = 32,
}

/// Calls an import that writes its result into a return area.
pub unsafe fn returned<T>(call: impl FnOnce(*mut T)) -> T {
    let mut area = MaybeUninit::<T>::uninit();
    call(area.as_mut_ptr());
    area.assume_init()
}

/// `cabi_realloc`: memory that the host writes results into.
pub unsafe fn realloc(old: *mut u8, old_size: usize, align: usize, size: usize) -> *mut u8 {
    if size == 0 {
        return align as *mut u8;
    }
    let layout = Layout::from_size_align_unchecked(if old_size == 0 { size } else { old_size }, align);
    let new = match old_size {
        0 => alloc::alloc::alloc(layout),
        _ => alloc::alloc::realloc(old, layout, size),
    };
    if new.is_null() {
        alloc::alloc::handle_alloc_error(layout);
    }
    new
}

/// Declares imports; outside WebAssembly they panic, so that code around a handler can be tested anywhere.
macro_rules! imports {
    ($($module:literal { $($name:literal fn $rust:ident($($arg:ident: $t:ty),*) $(-> $r:ty)?;)* })*) => {
        $(
            #[cfg(target_arch = "wasm32")]
            #[link(wasm_import_module = $module)]
            extern "C" { $(#[link_name = $name] pub fn $rust($($arg: $t),*) $(-> $r)?;)* }
            $(
                #[cfg(not(target_arch = "wasm32"))]
                pub unsafe fn $rust($(_: $t),*) $(-> $r)? {
                    panic!("longshore: there is no host: build for wasm32-unknown-unknown")
                }
            )*
        )*
    };
}

imports! {
    "wasi:messaging/types@0.2.0-draft" {
        "[static]client.connect" fn connect(name: *const u8, len: usize, ret: *mut Answer<u32, ErrorCase>);
        "[resource-drop]client" fn drop_client(client: u32);
        "[constructor]message" fn new_message(data: *const u8, len: usize) -> u32;
        "[resource-drop]message" fn drop_message(message: u32);
        "[method]message.topic" fn topic(message: u32, ret: *mut Maybe<Text>);
        "[method]message.content-type" fn content_type(message: u32, ret: *mut Maybe<Text>);
        "[method]message.set-content-type" fn set_content_type(message: u32, text: *const u8, len: usize);
        "[method]message.data" fn data(message: u32, ret: *mut List<u8>);
        "[method]message.metadata" fn metadata(message: u32, ret: *mut Maybe<List<Pair>>);
        "[method]message.set-metadata" fn set_metadata(message: u32, pairs: *const Pair, len: usize);
    }
    "wasi:messaging/producer@0.2.0-draft" {
        "send" fn send(client: u32, topic: *const u8, len: usize, message: u32, ret: *mut Unit);
    }
    "longshore:messaging/publisher@0.1.0" {
        "publish" fn publish(arguments: *const Publish, ret: *mut One);
        "publish-batch" fn publish_batch(client: u32, batch: *const Outgoing, len: usize, ret: *mut Batch);
        "publish-atomic" fn publish_atomic(client: u32, batch: *const Outgoing, len: usize, ret: *mut Atomic);
    }
    "longshore:messaging/delivery@0.1.0" {
        "info" fn info(message: u32, ret: *mut Maybe<Delivery>);
        "time-left" fn time_left() -> u64;
        "draining" fn draining() -> u32;
    }
    "wasi:logging/logging@0.1.0-draft" {
        "log" fn log(level: u32, context: *const u8, context_len: usize, text: *const u8, len: usize);
    }
    "wasi:messaging/request-reply@0.2.0-draft" {
        "[constructor]request-options" fn new_options() -> u32;
        "[method]request-options.set-timeout-ms" fn set_timeout(options: u32, millis: u32);
        "[method]request-options.set-expected-replies" fn set_replies(options: u32, count: u32);
        "request" fn request(client: u32, topic: *const u8, len: usize, message: u32, some: u32, options: u32, ret: *mut Replies);
        "reply" fn reply(to: u32, message: u32, ret: *mut Unit);
    }
    "wasi:keyvalue/store@0.2.0-draft" {
        "open" fn open(name: *const u8, len: usize, ret: *mut Opened);
        "[resource-drop]bucket" fn drop_bucket(bucket: u32);
        "[method]bucket.get" fn get(bucket: u32, key: *const u8, len: usize, ret: *mut Value);
        "[method]bucket.set" fn set(bucket: u32, key: *const u8, len: usize, value: *const u8, value_len: usize, ret: *mut Unit);
        "[method]bucket.delete" fn delete(bucket: u32, key: *const u8, len: usize, ret: *mut Unit);
        "[method]bucket.exists" fn exists(bucket: u32, key: *const u8, len: usize, ret: *mut Existence);
        "[method]bucket.list-keys" fn list_keys(bucket: u32, some: u32, cursor: u64, ret: *mut Keys);
    }
    "wasi:config/store@0.2.0-draft" {
        "get" fn config(key: *const u8, len: usize, ret: *mut Value);
    }
}
