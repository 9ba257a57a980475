//! The system calls of perf events, wrapped: `perf_event_open` and its ioctls.
//!
//! The numbers and `perf_event_attr` come from `perf-event-open-sys`, whose bindings are made when
//! the crate is released. See [`man 2 perf_event_open`][man].
//!
//! [man]: https://man7.org/linux/man-pages/man2/perf_event_open.2.html
#![allow(unsafe_code, reason = "system calls")]

use perf_event_open_sys::{bindings, ioctls};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

pub use perf_event_open_sys::bindings as abi;
pub use perf_event_open_sys::bindings::perf_event_attr as Attr;

/// The attribute in a size that perf knows since 5.13. A kernel takes any size, but some versions
/// of perf print a warning for a file with larger attributes than they know.
pub const ATTR_SIZE: u32 = bindings::PERF_ATTR_SIZE_VER7;

/// Which threads are recorded, and where.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// All threads on one CPU.
    Cpu(u32),
    /// One thread (0: the caller), on one CPU or on any.
    Thread(u32, Option<u32>),
    /// The members of a control group, on one CPU. The file is the group's open folder.
    Cgroup(BorrowedFd<'a>, u32),
}

/// An event that the kernel counts or records, until it is dropped.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Opens an event; as a member of the group of `leader`, if one is given.
    ///
    /// # Errors
    ///
    /// The kernel's error: `EACCES`/`EPERM` without the right, `ENOENT`/`EOPNOTSUPP` if the machine
    /// has no such counter, `EMFILE` if the process may not open more files, `ENODEV` for a CPU
    /// that is offline, `ESRCH` for a thread that is gone.
    pub fn open(attr: &Attr, whom: Whom<'_>, leader: Option<&Event>) -> io::Result<Event> {
        let close_on_exec = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
        let (pid, cpu, flags) = match whom {
            Whom::Cpu(cpu) => (-1, cpu as i32, close_on_exec),
            Whom::Thread(tid, cpu) => (tid as i32, cpu.map_or(-1, |c| c as i32), close_on_exec),
            Whom::Cgroup(folder, cpu) => {
                let flags = close_on_exec | u64::from(bindings::PERF_FLAG_PID_CGROUP);
                (folder.as_raw_fd(), cpu as i32, flags)
            }
        };
        let leader = leader.map_or(-1, |leader| leader.0.as_raw_fd());
        // If the kernel rejects the structure's size, it writes its own size back.
        let mut attr = *attr;
        attr.size = ATTR_SIZE;
        // SAFETY: `attr` is a whole `perf_event_attr`, of which the kernel reads and writes `size`
        // bytes at most; that is less than the structure has.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, leader, flags as _)
        };
        done(fd)?;
        // SAFETY: the call succeeded, so `fd` is open and nothing else owns it.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number in samples that identifies their event.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: the kernel writes eight bytes.
        done(unsafe { ioctls::ID(self.raw(), &mut id) })?;
        Ok(id)
    }

    /// Redirects the records into the ring of `other`, an event of the same CPU.
    pub fn redirect_to(&self, other: &Event) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::SET_OUTPUT(self.raw(), other.raw()) })
    }

    /// Starts counting or recording.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::ENABLE(self.raw(), 0) })
    }

    /// Stops counting or recording.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::DISABLE(self.raw(), 0) })
    }

    /// Records only what passes the filter, in the language of ftrace's event filters.
    pub fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter)?;
        // SAFETY: the kernel reads up to the zero byte and writes nothing.
        done(unsafe { ioctls::SET_FILTER(self.raw(), filter.as_ptr().cast_mut()) })
    }

    /// Pauses and resumes writing into the event's ring: an overwritable ring must be paused to be
    /// read.
    pub fn pause_output(&self, pause: bool) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::PAUSE_OUTPUT(self.raw(), u32::from(pause)) })
    }

    /// Reads the current value, in the form that the attribute asks for.
    pub fn read(&self, words: &mut [u64]) -> io::Result<()> {
        let mut bytes = vec![0; size_of_val(words)];
        let mut file = std::fs::File::from(self.0.try_clone()?);
        let read = io::Read::read(&mut file, &mut bytes)?;
        for (word, chunk) in words.iter_mut().zip(bytes[..read].chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
        }
        Ok(())
    }

    fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The attribute as stored in a file, in this machine's byte order.
pub fn attr_bytes(attr: &Attr) -> Vec<u8> {
    // SAFETY: the structure is plain data without padding, and larger than `ATTR_SIZE`.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(attr).cast::<u8>(), ATTR_SIZE as usize)
    };
    bytes.to_vec()
}

const _: () = assert!(size_of::<Attr>() >= ATTR_SIZE as usize);

/// Converts the return value of a system call.
pub(crate) fn done(returned: i32) -> io::Result<()> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_nobody_knows_is_an_error_not_a_panic() {
        let attr = Attr { type_: u32::MAX, ..Attr::default() };
        assert!(Event::open(&attr, Whom::Thread(0, None), None).is_err());
        let attr = Attr { type_: abi::PERF_TYPE_TRACEPOINT, config: u64::MAX, ..Attr::default() };
        assert!(Event::open(&attr, Whom::Cpu(u32::MAX >> 1), None).is_err());
    }
}
