// A consumer that splits a CSV file with a header (RFC 4180) into rows, each a JSON object, and publishes them as one batch.
import { Failure, Message, onMessage, Outgoing, publishAtomic } from "longshore";

onMessage((m: Message): Failure | null => {
  const rows = parse(m.text());
  if (rows.length == 0) return Failure.other("no header");
  const header = rows[0];
  const batch: Outgoing[] = [];
  for (let i = 1; i < rows.length; i++) {
    if (rows[i].length != header.length) {
      return Failure.other(`row ${i}: ${rows[i].length} fields, the header has ${header.length}`);
    }
    batch.push(new Outgoing("sheets/rows", Message.of(json(header, rows[i]), "application/json")));
  }
  const result = publishAtomic(batch);
  return result.error ? result.error!.toFailure() : null;
});

/** Splits a text into rows of fields. A field in quotes may hold commas, lines' ends and doubled quotes. */
function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [], field = "", begin = 0, quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c == 0x22 /* " */) {
      field += text.substring(begin, i);
      if (quoted && i + 1 < text.length && text.charCodeAt(i + 1) == 0x22) field += text.charAt(++i);
      else quoted = !quoted;
      begin = i + 1;
    } else if (!quoted && (c == 0x2c /* , */ || c == 0x0a)) {
      const end = c == 0x0a && i > begin && text.charCodeAt(i - 1) == 0x0d ? i - 1 : i;
      row.push(field + text.substring(begin, end));
      field = "";
      begin = i + 1;
      if (c == 0x2c) continue;
      rows.push(row);
      row = [];
    }
  }
  if (begin < text.length || field.length > 0 || row.length > 0) {
    row.push(field + text.substring(begin));
    rows.push(row);
  }
  return rows;
}

function json(names: string[], values: string[]): string {
  let text = "{";
  for (let i = 0; i < names.length; i++) {
    if (i > 0) text += ",";
    text += quote(names[i]) + ":" + quote(values[i]);
  }
  return text + "}";
}

/** A JSON string (RFC 8259): quotes, backslashes and control characters are escaped. */
function quote(s: string): string {
  let text = '"';
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c == 0x22 || c == 0x5c) text += "\\" + s.charAt(i);
    else if (c < 0x20) text += "\\u00" + (c < 0x10 ? "0" : "1") + (c & 15).toString(16);
    else text += s.charAt(i);
  }
  return text + '"';
}
