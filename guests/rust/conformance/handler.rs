//! The conformance guest: the topic of the message says what to do. guests/conformance/README.md lists the cases.

use longshore::{
    config, delivery, draining, log, publish, publish_atomic, publish_batch, reply, request, send, time_left_millis, Bucket, Error,
    Fence, Level, Message, Options, Outgoing, PublishError, RequestOptions,
};

longshore::handler!(handle);

fn handle(m: &Message) -> Result<(), Error> {
    let (what, detail) = m.topic.split_once('/').unwrap_or((&m.topic, ""));
    match what {
        "echo" => send("out", m),
        "batch" => batch(m),
        "atomic" => atomic(m),
        "again" => again(m),
        "refuse" => refuse(m),
        "each" => lines(m).iter().try_for_each(|line| send("out", line)),
        "publish" => publish_with_options(m),
        "info" => info(m),
        "values" => values(m),
        "config" => settings(m),
        "request" => request_from(detail, m),
        "reply" => reply_twice(m),
        "log" => {
            log(Level::Warn, &text(m));
            Ok(())
        }
        "error" => fail(detail, text(m)),
        "trap" => panic!("{}", text(m)),
        "forget" => forget(detail),
        _ => Err(format!("no such case: {}", m.topic).into()),
    }
}

fn text(m: &Message) -> String {
    String::from_utf8_lossy(&m.data).into_owned()
}

/// A message for each line of the payload, the line's end included.
fn lines(m: &Message) -> Vec<Message> {
    m.data.split_inclusive(|b| *b == b'\n').map(|line| Message { data: line.into(), ..m.clone() }).collect()
}

fn outgoing(lines: &[Message]) -> Vec<Outgoing<'_>> {
    lines.iter().map(|message| Outgoing { topic: "out", message, options: None }).collect()
}

fn batch(m: &Message) -> Result<(), Error> {
    let mut ids = String::new();
    for result in publish_batch(&outgoing(&lines(m)))? {
        ids += &result?.id;
        ids.push('\n');
    }
    send("ids", &Message::new(ids))
}

fn atomic(m: &Message) -> Result<(), Error> {
    let lines = lines(m);
    let mut list = outgoing(&lines);
    if let (Some(last), false) = (list.last_mut(), m.content_type.is_empty()) {
        last.topic = &m.content_type;
    }
    let report = match publish_atomic(&list) {
        Ok(receipts) => receipts.iter().map(|r| r.id.clone() + "\n").collect(),
        Err(e) => e.to_string(),
    };
    send("report", &Message::new(report))
}

fn again(m: &Message) -> Result<(), Error> {
    let one = Outgoing { topic: "out", message: m, options: None };
    for result in publish_batch(&[one, one])? {
        result?;
    }
    Ok(())
}

fn refuse(m: &Message) -> Result<(), Error> {
    let to = |topic| Outgoing { topic, message: m, options: None };
    let mut report = String::new();
    for result in publish_batch(&[to("out"), to("forbidden"), to("full")])? {
        match result {
            Ok(_) => report += "ok\n",
            Err(e) => {
                report += &format!("{}\n", e);
                if let PublishError::Limit(_, longshore::Limit { retry_after_millis: Some(after), .. }) = e {
                    report += &format!("after {}\n", after);
                }
            }
        }
    }
    if let Err(e) = send("forbidden", m) {
        report += &e.to_string();
    }
    send("report", &Message::new(report))
}

fn publish_with_options(m: &Message) -> Result<(), Error> {
    let options = match m.data.as_slice() {
        b"none" | b"null" => Options::default(),
        _ => Options {
            delay: Some(1000),
            ttl: Some(2000),
            deadline: Some(1_900_000_000_000),
            priority: 7,
            idempotency_key: Some("once".into()),
            ordering_key: Some("in order".into()),
            fence: Some(Fence { key: "gate".into(), token: 9 }),
            required_features: vec!["gpu".into(), "eu".into()],
            target: Some("me".into()),
            cause: None,
            extensions: if m.data == b"extension" { vec![("x".into(), "y".into())] } else { vec![] },
        },
    };
    let receipt = publish("out", m, &options)?;
    let age = if receipt.duplicate { "duplicate" } else { "new" };
    send("report", &Message::new(format!("{} {}", receipt.id, age)))
}

fn info(m: &Message) -> Result<(), Error> {
    let d = delivery(m).ok_or("no delivery info")?;
    let mut b = Vec::new();
    let mut field = |name: &str, value: Option<String>| b.extend(value.map(|v| format!("{}={}\n", name, v)));
    field("id", Some(d.id));
    field("topic", Some(d.topic));
    field("attempt", Some(d.attempt.to_string()));
    field("max-attempts", Some(d.max_attempts.to_string()));
    field("previous-reason", d.previous_reason);
    field("group", d.group);
    field("published-at", Some(d.published_at.to_string()));
    field("expires-at", d.expires_at.map(|n| n.to_string()));
    field("deadline", d.deadline.map(|n| n.to_string()));
    field("priority", Some(d.priority.to_string()));
    field("idempotency-key", d.idempotency_key);
    field("ordering-key", d.ordering_key);
    if let Some(f) = d.fence {
        field(&format!("fence.{}", f.key), Some(f.token.to_string()));
    }
    field("parent", d.parent);
    field("hops", Some(d.hops.to_string()));
    if let Some(c) = d.claims {
        field("tenant", Some(c.tenant));
        field("subject", Some(c.subject));
        field("issuer", Some(c.issuer));
        field("token-id", Some(c.token_id));
        field("issued-at", Some(c.issued_at.to_string()));
        c.extra.into_iter().for_each(|(k, v)| field(&format!("extra.{}", k), Some(v)));
    }
    d.trace.into_iter().for_each(|(k, v)| field(&format!("trace.{}", k), Some(v)));
    let word = |is: bool, yes: &str, no: &str| Some(String::from(if is { yes } else { no }));
    field("time-left", word(time_left_millis() > 0, "some", "none"));
    field("draining", word(draining(), "yes", "no"));
    field("own", word(delivery(&Message::default()).is_some(), "some", "none"));
    send("report", &Message::new(b.concat()))
}

/// Keeps the payload's words under their numbers, and reports what it finds.
fn values(m: &Message) -> Result<(), Error> {
    let denied = Bucket::open("secrets").err().map(|e| e.to_string()).unwrap_or_default();
    let bucket = Bucket::open("stock")?;
    for (i, word) in text(m).split(' ').enumerate() {
        bucket.set(&format!("key{}", i), word.as_bytes())?;
    }
    bucket.set("empty", b"")?;
    bucket.delete("key0")?;
    let keys = bucket.keys()?;
    let mut report = format!("{}\n{} {}\n", denied, keys.len(), keys.join(" "));
    for key in ["key0", "key1", "empty", "before"] {
        let value = bucket.get(key)?;
        let found = value.is_some();
        let value = String::from_utf8_lossy(&value.unwrap_or_default()).into_owned();
        report += &format!("{} {} {} {:?}\n", key, found, bucket.exists(key)?, value);
    }
    report += &bucket.set("", b"").err().map(|e| e.to_string()).unwrap_or_default();
    send("out", &Message::new(report))
}

fn settings(m: &Message) -> Result<(), Error> {
    let line = |key: &str| format!("{}: {}\n", key, config(key).unwrap_or_else(|| "nothing".into()));
    send("report", &Message::new(text(m).split(' ').map(line).collect::<String>()))
}

/// Requests the message of a topic, and sends the replies to out, as they came.
fn request_from(topic: &str, m: &Message) -> Result<(), Error> {
    let mut options = RequestOptions::default();
    if !m.data.is_empty() {
        options = RequestOptions { timeout_millis: Some(1500), replies: Some(3) };
    }
    let replies = match request(topic, m, &options) {
        Ok(replies) => replies,
        Err(e) => return send("report", &Message::new(e.to_string())),
    };
    replies.iter().try_for_each(|r| send("out", r))?;
    match replies.first().and_then(delivery) {
        Some(d) => send("report", &Message::new(format!("{} of {}", d.id, d.claims.map(|c| c.subject).unwrap_or_default()))),
        None => Ok(()),
    }
}

/// Replies to the message with itself, twice, and says what the host said.
fn reply_twice(m: &Message) -> Result<(), Error> {
    match reply(m, m).and_then(|_| reply(m, m)) {
        Err(e) => send("report", &Message::new(e.to_string())),
        Ok(()) => Ok(()),
    }
}

fn fail(case: &str, text: String) -> Result<(), Error> {
    Err(match case {
        "timeout" => Error::Timeout,
        "connection" => Error::Connection(text),
        "permission-denied" => Error::PermissionDenied(text),
        _ => Error::Other(text),
    })
}

fn forget(count: &str) -> Result<(), Error> {
    for _ in 0..count.parse::<u32>().map_err(|e| e.to_string())? {
        send("out", &Message::default())?;
    }
    panic!("forget it")
}
