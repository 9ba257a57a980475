//! The user that a command runs as.
#![allow(unsafe_code, reason = "the system's list of users is read by functions of C")]

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub(crate) uid: libc::uid_t,
    pub(crate) gid: libc::gid_t,
    pub(crate) name: CString,
    pub(crate) home: CString,
}

/// Maximal size of an entry.
const ENTRY: usize = 1 << 16;

impl User {
    /// Finds a user by name or by number.
    pub fn find(word: &str) -> Option<User> {
        let name = CString::new(word).ok()?;
        let named = |entry, buffer: &mut [libc::c_char], found: &mut *mut libc::passwd| {
            // SAFETY: the pointers are to live values with the given lengths.
            unsafe {
                libc::getpwnam_r(name.as_ptr(), entry, buffer.as_mut_ptr(), buffer.len(), found)
            }
        };
        let numbered = |uid| {
            move |entry, buffer: &mut [libc::c_char], found: &mut *mut libc::passwd| {
                // SAFETY: as above.
                unsafe { libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer.len(), found) }
            }
        };
        look(named).or_else(|| look(numbered(word.parse().ok()?)))
    }

    /// Becomes this user for good, in a process of one thread that is about to be another program.
    pub(crate) fn become_it(&self) -> bool {
        // SAFETY: plain system calls, and strings that end with a zero byte. The groups are set
        // first, because only root may change them.
        unsafe {
            let set = |key: &CStr, value: &CStr| libc::setenv(key.as_ptr(), value.as_ptr(), 1) == 0;
            libc::initgroups(self.name.as_ptr(), self.gid) == 0
                && libc::setgid(self.gid) == 0
                && libc::setuid(self.uid) == 0
                && set(c"HOME", &self.home)
                && set(c"USER", &self.name)
                && set(c"LOGNAME", &self.name)
        }
    }
}

fn look(
    ask: impl Fn(*mut libc::passwd, &mut [libc::c_char], &mut *mut libc::passwd) -> libc::c_int,
) -> Option<User> {
    let mut buffer = vec![0; ENTRY];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    if ask(entry.as_mut_ptr(), &mut buffer, &mut found) != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the entry was found, so it is written, and its strings are in the buffer.
    unsafe {
        let entry = entry.assume_init();
        Some(User {
            uid: entry.pw_uid,
            gid: entry.pw_gid,
            name: CStr::from_ptr(entry.pw_name).to_owned(),
            home: CStr::from_ptr(entry.pw_dir).to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_a_name_and_a_number() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.name.to_str()), (0, Ok("root")));
        assert_eq!(User::find("0"), Some(root));
        assert_eq!((User::find("no such user"), User::find("a\0b")), (None, None));
    }
}
