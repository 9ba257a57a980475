//! Systrace pages: where in the HTML the trace is.
//!
//! A page carries the whole viewer, megabytes of script, and after it the trace: since 2014 as
//! the text of a `<script class="trace-data">`, before that as a string assigned to
//! `linuxPerfData`, each line ended by an escaped newline and a backslash.

use crate::sniff::{DialectKind, sniff};
use crate::source::Source;
use holdup_trace::ErrorKind;
use memchr::memmem;

/// Bytes examined to decide whether a script is a trace.
const HEAD: usize = 1 << 20;

/// A page's trace.
pub(crate) struct Page {
    pub(crate) trace: Source,
    /// The page ends within it.
    pub(crate) is_cut: bool,
}

/// Narrow `source` to the trace, or replace it by the unescaped trace.
pub(crate) fn cut_out(mut source: Source) -> Result<Page, ErrorKind> {
    let page = source.bytes();
    let mut from = 0;
    let mut compressed = false;
    while let Some(n) = memmem::find(&page[from..], b"<script") {
        let at = from + n;
        from = at + 7;
        let tag = &page[at..page.len().min(at + 256)];
        // The viewer's own code has this tag inside a regular expression; a real one ends its line.
        let Some(close) = memchr::memchr(b'>', tag) else { continue };
        if memmem::find(&tag[..close], b"trace-data").is_none()
            && memmem::find(&tag[..close], b"viewer-data").is_none()
        {
            continue;
        }
        if !tag.get(close + 1).is_some_and(|b| matches!(b, b'\n' | b'\r' | b'#' | b' ')) {
            continue;
        }
        compressed |= memmem::find(&tag[..close], b"viewer-data").is_some();
        let start = at + close + 1;
        let close = memmem::find(&page[start..], b"</script>").map(|n| start + n);
        let end = close.unwrap_or(page.len());
        if is_trace(&page[start..end]) {
            source.narrow(start, end);
            return Ok(Page { trace: source, is_cut: close.is_none() });
        }
        from = end;
    }
    for name in [&b"linuxPerfData = \""[..], b"linuxPerfData=\""] {
        if let Some(at) = memmem::find(page, name) {
            let (text, is_whole) = unescape(&page[at + name.len()..]);
            return Ok(Page { trace: Source::memory(text), is_cut: !is_whole });
        }
    }
    Err(if compressed {
        ErrorKind::Unsupported {
            what: "an HTML page with a compressed trace".to_owned(),
            way_out: "save the trace as text, trace.dat or perf.data, and give that file to holdup"
                .to_owned(),
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

fn is_trace(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD)];
    sniff(head).is_some_and(|d| {
        matches!(d.kind, DialectKind::Kernel | DialectKind::TracePipe | DialectKind::Report)
    })
}

/// The JavaScript string at the front of `text`, up to its closing quote, and whether it has one.
fn unescape(text: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut escaped = false;
    for &b in text {
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
                b'"' => return (out, true),
                b => out.push(b),
            }
        }
    }
    (out, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(page: &str) -> Result<Page, String> {
        cut_out(Source::memory(page.as_bytes().to_vec())).map_err(|e| e.to_string())
    }

    fn text(page: &str) -> Result<String, String> {
        let page = cut(page)?;
        assert!(!page.is_cut);
        Ok(String::from_utf8(page.trace.bytes().to_vec()).unwrap())
    }

    #[test]
    fn a_page_that_ends_within_its_trace_is_cut() {
        let new = "<html><script class=\"trace-data\" type=\"application/text\">\n\
            # tracer: nop\n x";
        let old = "<html><script>var linuxPerfData = \"\\\n# tracer: nop\\n\\\n a-1";
        for page in [new, old] {
            assert!(cut(page).is_ok_and(|page| page.is_cut), "{page}");
        }
    }

    #[test]
    fn the_script_element_not_the_expression_that_looks_for_it() {
        let page = "<!DOCTYPE html>\nif(/^  <script class=\"trace-data\" \
            type=\"application\\/text\">$/)\n\
                    <script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\n\
                    </script>\n\
                    <script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n x\n\
                    </script>\n";
        assert_eq!(text(page).unwrap(), "\n# tracer: nop\n x\n");
    }

    #[test]
    fn the_older_string() {
        let page = "<html><script>var linuxPerfData = \"\\\n# tracer: nop\\n\\\n\
            \x20a-1 [000] 1.0: x: \\\"q\\\"\\n\\\n\";\n</script>";
        assert_eq!(text(page).unwrap(), "# tracer: nop\n a-1 [000] 1.0: x: \"q\"\n");
    }

    #[test]
    fn pages_without_trace_say_so() {
        assert!(text("<html></html>").unwrap_err().contains("linuxPerfData"));
        assert!(
            text("<html><script id=\"viewer-data\" type=\"text/plain\">\nH4sI\n</script></html>")
                .unwrap_err()
                .contains("compressed")
        );
    }
}
