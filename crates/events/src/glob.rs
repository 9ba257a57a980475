//! Patterns for names of events.

/// Whether `name` matches `pattern`, in which `*` stands for any characters and `?` for one.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (p, n) = (pattern.as_bytes(), name.as_bytes());
    let (mut pi, mut ni) = (0, 0);
    // Where to go on if the characters after the last star do not fit.
    let mut retry: Option<(usize, usize)> = None;
    while ni < n.len() {
        match p.get(pi) {
            Some(b'*') => {
                retry = Some((pi, ni));
                pi += 1;
            }
            Some(&c) if c == b'?' || c == n[ni] => {
                pi += 1;
                ni += 1;
            }
            _ => match retry {
                Some((star, at)) => {
                    retry = Some((star, at + 1));
                    pi = star + 1;
                    ni = at + 1;
                }
                None => return false,
            },
        }
    }
    p[pi..].iter().all(|&c| c == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        for (pattern, name, want) in [
            ("sched:*", "sched:sched_switch", true),
            ("sched_*", "sched:sched_switch", false),
            ("*switch", "sched:sched_switch", true),
            ("sys_e???r", "sys_enter", true),
            ("*a*b", "aab", true),
            ("*a*b", "aabc", false),
            ("", "", true),
            ("*", "", true),
            ("a", "", false),
        ] {
            assert_eq!(matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
