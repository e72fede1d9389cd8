//! The conformance guest with explicit outcomes: the payload says which.

use longshore::{send, Message, Outcome};

longshore::outcome_handler!(decide);

fn decide(m: &Message) -> Outcome {
    let text = String::from_utf8_lossy(&m.data);
    match (&*text, text.strip_prefix("reject ")) {
        ("retry", _) => Outcome::Retry(None),
        ("retry later", _) => Outcome::Retry(Some(1500)),
        ("skip", _) => Outcome::Skip,
        (_, Some(why)) => Outcome::Reject(why.into()),
        _ => match send("out", m) {
            Ok(()) => Outcome::Ack,
            Err(e) => Outcome::Reject(e.to_string()),
        },
    }
}
