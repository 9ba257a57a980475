//! Words of commands that are printed for copying into a shell.

/// `word` as a shell reads it: quoted if it has blanks or special characters.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:,=+@%^~".contains(c);
    if !word.is_empty() && !word.starts_with('~') && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_read_is_quoted() {
        for (word, typed) in [
            ("perf.data", "perf.data"),
            ("/tmp/a-b/run_1.data", "/tmp/a-b/run_1.data"),
            ("a b.data", "'a b.data'"),
            ("it's", "'it'\\''s'"),
            ("nginx*", "'nginx*'"),
            ("~x", "'~x'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), typed);
        }
    }
}
