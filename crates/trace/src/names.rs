//! Interned names: comms, lock classes, interrupt handlers.

use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};

/// Whether a name fits a pattern, in which `*` stands for any characters and `?` for one.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Position of the last star, and the least length of what it stands for.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// A name, interned in [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct NameId(pub u32);

impl NameId {
    /// No name given.
    pub const NONE: NameId = NameId(0);
}

#[derive(Default)]
struct Inner {
    ids: FxHashMap<Arc<[u8]>, u32>,
    names: Vec<Arc<[u8]>>,
}

/// Every name of one trace, shared by all its decoders.
///
/// Ids depend on which decoder saw a name first. So they must never reach an output or decide an
/// order; the text does.
#[derive(Default)]
pub struct Names(Mutex<Inner>);

impl Names {
    /// An empty table.
    pub fn new() -> Arc<Names> {
        Arc::default()
    }

    /// The id of `name`, up to its first NUL. Takes a lock: decoders go through [`LocalNames`].
    pub fn intern(&self, name: &[u8]) -> NameId {
        let name = until_nul(name);
        if name.is_empty() {
            return NameId::NONE;
        }
        let mut inner = self.0.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(&id) = inner.ids.get(name) {
            return NameId(id);
        }
        let key: Arc<[u8]> = name.into();
        inner.names.push(key.clone());
        let id = inner.names.len() as u32;
        inner.ids.insert(key, id);
        NameId(id)
    }

    /// The text, lossily as UTF-8; empty for [`NameId::NONE`].
    pub fn get(&self, id: NameId) -> String {
        String::from_utf8_lossy(&self.bytes(id)).into_owned()
    }

    /// The bytes as recorded; empty for [`NameId::NONE`].
    pub fn bytes(&self, id: NameId) -> Arc<[u8]> {
        let inner = self.0.lock().unwrap_or_else(|e| e.into_inner());
        match (id.0 as usize).checked_sub(1).and_then(|i| inner.names.get(i)) {
            Some(n) => n.clone(),
            None => Arc::from(&[][..]),
        }
    }
}

fn until_nul(name: &[u8]) -> &[u8] {
    match name.iter().position(|&b| b == 0) {
        Some(n) => &name[..n],
        None => name,
    }
}

const SLOTS: usize = 1024;

/// One decoder's view of [`Names`]: no lock and no hashing for a recently seen name.
pub struct LocalNames {
    shared: Arc<Names>,
    /// Direct-mapped by a hint (the tid): a thread's comm rarely changes, so one 16-byte compare
    /// answers nearly every look-up.
    recent: Box<[(u128, NameId); SLOTS]>,
    comms: FxHashMap<u128, NameId>,
    long: FxHashMap<Box<[u8]>, NameId>,
}

impl LocalNames {
    /// A view with empty caches.
    pub fn new(shared: Arc<Names>) -> LocalNames {
        LocalNames {
            shared,
            recent: Box::new([(0, NameId::NONE); SLOTS]),
            comms: FxHashMap::default(),
            long: FxHashMap::default(),
        }
    }

    /// The id of a `char[16]` comm. `hint` is a small number that usually goes with it (its tid).
    #[inline]
    pub fn comm(&mut self, hint: u32, comm: [u8; 16]) -> NameId {
        let key = u128::from_ne_bytes(comm);
        let slot = &self.recent[hint as usize % SLOTS];
        if slot.0 == key {
            return slot.1;
        }
        self.another_comm(hint, comm)
    }

    fn another_comm(&mut self, hint: u32, comm: [u8; 16]) -> NameId {
        let key = u128::from_ne_bytes(comm);
        let id = match self.comms.get(&key) {
            Some(&id) => id,
            None => {
                let id = self.shared.intern(&comm);
                self.comms.insert(key, id);
                id
            }
        };
        self.recent[hint as usize % SLOTS] = (key, id);
        id
    }

    /// The id of a name of any length. Names up to 16 bytes share the comm cache.
    #[inline]
    pub fn name(&mut self, hint: u32, name: &[u8]) -> NameId {
        // Bytes after a NUL make another cache entry, not another name.
        if name.len() <= 16 {
            let mut comm = [0; 16];
            comm[..name.len()].copy_from_slice(name);
            return self.comm(hint, comm);
        }
        self.long_name(name)
    }

    fn long_name(&mut self, name: &[u8]) -> NameId {
        match self.long.get(name) {
            Some(&id) => id,
            None => {
                let id = self.shared.intern(name);
                self.long.insert(name.into(), id);
                id
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars_and_question_marks() {
        for (pattern, name, fit) in [
            ("nginx", "nginx", true),
            ("nginx", "nginx2", false),
            ("nginx*", "nginx", true),
            ("*worker*", "kworker/0:1", true),
            ("c?t", "cat", true),
            ("c?t", "cart", false),
            ("*a*b", "aabc", false),
            ("*a*b", "aacb", true),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn bytes_after_the_nul_do_not_make_another_name() {
        let names = Names::new();
        let mut local = LocalNames::new(names.clone());
        let a = local.comm(7, *b"bash\0\0\0\0\0\0\0\0\0\0\0\0");
        let b = local.comm(7, *b"bash\0leftovers\0\0");
        assert_eq!(a, b);
        assert_eq!(names.get(a), "bash");
        assert_eq!(local.name(1, b"bash"), a);
        assert_eq!(
            names.get(local.name(0, b"a name longer than sixteen bytes")),
            "a name longer than sixteen bytes"
        );
        assert_eq!(local.name(0, b""), NameId::NONE);
    }
}
