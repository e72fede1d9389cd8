//! The conformance guest with batches of deliveries: each payload says what its outcome is.

use longshore::{delivery, publish, Error, Message, Options, Outcome};

longshore::batch_handler!(decide);

fn decide(messages: &[Message]) -> Result<Vec<Outcome>, Error> {
    messages.iter().map(one).collect()
}

fn one(m: &Message) -> Result<Outcome, Error> {
    Ok(match m.data.as_slice() {
        b"error" => return Err(Error::Connection("all again".into())),
        b"retry" => Outcome::Retry(Some(1500)),
        b"reject" => Outcome::Reject("no".into()),
        b"ack" => {
            let options = Options { cause: delivery(m).map(|d| d.id), ..Options::default() };
            publish("out", m, &options)?;
            Outcome::Ack
        }
        _ => Outcome::Skip,
    })
}
