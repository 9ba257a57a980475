//! Systrace pages: where in the HTML the trace is.
//!
//! A page carries the whole viewer, megabytes of script, and after it the trace: since 2014 as
//! the text of a `<script class="trace-data">`, before that as a string assigned to
//! `linuxPerfData`, each line ended by an escaped newline and a backslash.

use crate::sniff::{DialectKind, sniff};
use crate::source::Source;
use holdup_trace::ErrorKind;

const WINDOW: usize = 1 << 20;

/// Narrow `source` to the trace, or replace it by the unescaped trace.
pub(crate) fn cut_out(mut source: Source) -> Result<Source, ErrorKind> {
    let mut from = 0;
    let mut compressed = false;
    while let Some(at) = find(&source, from, b"<script")? {
        from = at + 7;
        let mut tag = [0; 256];
        let n = source.read_at(at, &mut tag)?;
        let tag = &tag[..n];
        // The viewer's own code has this tag inside a regular expression; a real one ends its line.
        let Some(close) = memchr::memchr(b'>', tag) else { continue };
        if memchr::memmem::find(&tag[..close], b"trace-data").is_none() && memchr::memmem::find(&tag[..close], b"viewer-data").is_none() {
            continue;
        }
        if !tag.get(close + 1).is_some_and(|b| matches!(b, b'\n' | b'\r' | b'#' | b' ')) {
            continue;
        }
        compressed |= memchr::memmem::find(&tag[..close], b"viewer-data").is_some();
        let start = at + close as u64 + 1;
        let end = find(&source, start, b"</script>")?.unwrap_or(source.len());
        if is_trace(&source, start, end)? {
            source.narrow(start, end);
            return Ok(source);
        }
        from = end;
    }
    for name in [&b"linuxPerfData = \""[..], b"linuxPerfData=\""] {
        if let Some(at) = find(&source, 0, name)? {
            let start = at + name.len() as u64;
            return Ok(Source::memory(unescape(&source, start)?));
        }
    }
    Err(if compressed {
        ErrorKind::Unsupported {
            what: "an HTML page with a compressed trace".to_owned(),
            way_out: "save the trace as text or as trace.dat / perf.data and give holdup that".to_owned(),
        }
    } else {
        ErrorKind::malformed(
            0,
            "HTML page".to_owned(),
            "a systrace with its trace in a <script class=\"trace-data\"> or in linuxPerfData",
            "none; give holdup the text trace itself",
        )
    })
}

fn is_trace(source: &Source, start: u64, end: u64) -> Result<bool, ErrorKind> {
    let mut head = vec![0; WINDOW.min((end - start) as usize)];
    let n = source.read_at(start, &mut head)?;
    Ok(sniff(&head[..n]).is_some_and(|d| matches!(d.kind, DialectKind::Kernel | DialectKind::TracePipe | DialectKind::Report)))
}

/// The first `needle` at or after `from`.
fn find(source: &Source, from: u64, needle: &[u8]) -> Result<Option<u64>, ErrorKind> {
    let mut buf = vec![0; WINDOW];
    let mut at = from;
    loop {
        let n = source.read_at(at, &mut buf)?;
        if let Some(i) = memchr::memmem::find(&buf[..n], needle) {
            return Ok(Some(at + i as u64));
        }
        if n < buf.len() {
            return Ok(None);
        }
        // The needle may lie across the border.
        at += (n - needle.len() + 1) as u64;
    }
}

/// The JavaScript string that starts at `start`, up to its closing quote.
fn unescape(source: &Source, start: u64) -> Result<Vec<u8>, ErrorKind> {
    let mut out = Vec::new();
    let mut buf = vec![0; WINDOW];
    let mut at = start;
    let mut escaped = false;
    loop {
        let n = source.read_at(at, &mut buf)?;
        for &b in &buf[..n] {
            if escaped {
                escaped = false;
                match b {
                    b'n' => out.push(b'\n'),
                    b't' => out.push(b'\t'),
                    // A backslash at the end of the line continues the string.
                    b'\n' | b'\r' => {}
                    other => out.push(other),
                }
            } else {
                match b {
                    b'\\' => escaped = true,
                    b'"' => return Ok(out),
                    b => out.push(b),
                }
            }
        }
        if n < buf.len() {
            return Ok(out);
        }
        at += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(page: &str) -> Result<String, String> {
        let s = cut_out(Source::memory(page.as_bytes().to_vec())).map_err(|e| e.to_string())?;
        Ok(String::from_utf8(s.head(1 << 20).unwrap()).unwrap())
    }

    #[test]
    fn the_script_element_not_the_expression_that_looks_for_it() {
        let page = "<!DOCTYPE html>\nif(/^  <script class=\"trace-data\" type=\"application\\/text\">$/)\n\
                    <script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\n</script>\n\
                    <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n x\n</script>\n";
        assert_eq!(text(page).unwrap(), "\n# tracer: nop\n x\n");
    }

    #[test]
    fn the_older_string() {
        let page = "<html><script>var linuxPerfData = \"\\\n# tracer: nop\\n\\\n a-1 [000] 1.0: x: \\\"q\\\"\\n\\\n\";\n</script>";
        assert_eq!(text(page).unwrap(), "# tracer: nop\n a-1 [000] 1.0: x: \"q\"\n");
    }

    #[test]
    fn pages_without_trace_say_so() {
        assert!(text("<html></html>").unwrap_err().contains("linuxPerfData"));
        assert!(text("<html><script id=\"viewer-data\" type=\"text/plain\">\nH4sI\n</script></html>").unwrap_err().contains("compressed"));
    }
}
