use crate::abi::{self, returned};
use crate::publish::connect;
use crate::{Error, Message};
use alloc::vec::Vec;

/// How long a request waits, and for how many replies.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOptions {
    /// `None` is for as long as the call has time.
    pub timeout_millis: Option<u32>,
    /// How many replies end the waiting; `None` is one.
    pub replies: Option<u32>,
}

/// Publishes a message at once, and waits for replies to it: until as many came as are expected, or until the time is over, which
/// gives those that came. Without any it is `Error::Timeout`. `delivery` says who replied.
///
/// A request isn't undone if the handler fails afterwards, and made again when the message is delivered again.
pub fn request(topic: &str, message: &Message, options: &RequestOptions) -> Result<Vec<Message>, Error> {
    unsafe {
        let client = connect()?;
        let o = abi::new_options();
        if let Some(n) = options.timeout_millis {
            abi::set_timeout(o, n);
        }
        if let Some(n) = options.replies {
            abi::set_replies(o, n);
        }
        let m = message.lower();
        let answer = returned(|r| abi::request(client, topic.as_ptr(), topic.len(), m, 1, o, r));
        abi::drop_message(m);
        if answer.is_error != 0 {
            return Err(Error::lift(answer.value.error));
        }
        Ok(answer.value.ok.adopt().into_iter().map(|handle| Message::lift(handle)).collect())
    }
}

/// Publishes an answer to a delivered message, for whoever waits for it with `request`, when the handler has returned well.
pub fn reply(to: &Message, message: &Message) -> Result<(), Error> {
    if to.handle == 0 {
        return Err(Error::Other("only a message that is being handled can be replied to".into()));
    }
    unsafe {
        let m = message.lower();
        let answer = returned(|r| abi::reply(to.handle, m, r));
        if answer.is_error != 0 {
            return Err(Error::lift(answer.value.error));
        }
    }
    Ok(())
}
