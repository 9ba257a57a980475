//! Text for terminals and readers without UTF-8.

use std::borrow::Cow;

/// Whether the locale restricts output to ASCII. Without any locale settings it does not.
pub(crate) fn only() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).is_some_and(|locale| is_ascii(&locale))
}

fn is_ascii(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    !locale.contains("utf-8") && !locale.contains("utf8")
}

/// Replace bars, tree branches and sparklines by ASCII; names stay unchanged.
pub(crate) fn of(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return text.into();
    }
    text.chars().map(plain).collect::<String>().into()
}

fn plain(c: char) -> char {
    match c {
        '█' | '▉' | '▊' | '▋' => '#',
        '▌' | '▍' | '▄' => '=',
        '▎' | '▏' | '▃' | '─' => '-',
        '▁' => '_',
        '▂' | '·' => '.',
        '▅' | '┬' | '┴' | '┼' | '┌' | '┐' | '┘' => '+',
        '▆' | '•' => '*',
        '▇' => '%',
        '│' | '├' => '|',
        '└' => '`',
        '→' => '>',
        '←' => '<',
        '×' => 'x',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_say_what_is_understood() {
        for (locale, ascii) in
            [("C", true), ("POSIX", true), ("de_DE.UTF-8", false), ("C.utf8", false)]
        {
            assert_eq!(is_ascii(locale), ascii, "{locale}");
        }
    }

    #[test]
    fn trees_and_bars_have_ascii_forms() {
        assert_eq!(of("└─ busy 99.6 ███▏"), "`- busy 99.6 ###-");
        assert_eq!(of("größe"), "größe");
    }
}
