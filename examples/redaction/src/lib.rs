//! A consumer that takes what is secret out of log lines: card numbers, mail addresses, bearer tokens.

use longshore::{log, send, Error, Level, Message};

longshore::handler!(redact);

fn redact(m: &Message) -> Result<(), Error> {
    let text = std::str::from_utf8(&m.data).map_err(|e| format!("not UTF-8 from byte {} on", e.valid_up_to()))?;
    let mut hidden = 0;
    let lines: Vec<String> = text.split('\n').map(|line| clean(line, &mut hidden)).collect();
    if hidden > 0 {
        log(Level::Info, &format!("hid {} secrets", hidden));
    }
    send("logs/clean", &Message { data: lines.join("\n").into_bytes(), ..m.clone() })
}

/// The line with its secrets replaced. Words are what is between spaces, quotes, commas, brackets and the like.
fn clean(line: &str, hidden: &mut u32) -> String {
    let mut out = String::with_capacity(line.len());
    let mut before = "";
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let (separator, next) = tail.split_at(tail.chars().next().map_or(0, char::len_utf8));
        match kind(before, word) {
            Some(kind) => {
                *hidden += 1;
                out += kind;
            }
            None => out += word,
        }
        out += separator;
        if !word.is_empty() {
            before = word;
        }
        rest = next;
    }
    out
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || "\"'`,;:=<>()[]{}".contains(c)
}

/// What a word is called that must not be seen.
fn kind(before: &str, word: &str) -> Option<&'static str> {
    if before.eq_ignore_ascii_case("bearer") && word.len() >= 8 {
        return Some("[token]");
    }
    if is_mail(word) {
        return Some("[mail]");
    }
    if is_card(word) {
        return Some("[card]");
    }
    None
}

fn is_mail(word: &str) -> bool {
    match word.split_once('@') {
        Some((user, host)) => !user.is_empty() && host.contains('.') && !host.contains('@'),
        None => false,
    }
}

/// A number of 13 to 19 digits, dashes allowed, whose last digit is right (Luhn's algorithm, ISO/IEC 7812-1).
fn is_card(word: &str) -> bool {
    if !word.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return false;
    }
    let digits: Vec<u32> = word.bytes().filter(u8::is_ascii_digit).map(|b| u32::from(b - b'0')).collect();
    let weigh = |(i, d): (usize, &u32)| if i % 2 == 0 { *d } else { 2 * d / 10 + 2 * d % 10 };
    (13..=19).contains(&digits.len()) && digits.iter().rev().enumerate().map(weigh).sum::<u32>() % 10 == 0
}
