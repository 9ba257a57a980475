//! The system calls of perf events, wrapped: `perf_event_open` and its ioctls.
//!
//! The numbers and `perf_event_attr` come from `perf-event-open-sys`, whose bindings are made at
//! release time. See [`man 2 perf_event_open`][man].
//!
//! [man]: https://man7.org/linux/man-pages/man2/perf_event_open.2.html
#![allow(unsafe_code, reason = "system calls")]

use perf_event_open_sys::{bindings, ioctls};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

pub use perf_event_open_sys::bindings as abi;
pub use perf_event_open_sys::bindings::perf_event_attr as Attr;

/// The attribute in a size that perf knows since 5.13. A kernel takes any size, but a file with
/// larger attributes than its reader knows is read with a warning by some versions of perf.
pub const ATTR_SIZE: u32 = bindings::PERF_ATTR_SIZE_VER7;

/// Whose events are recorded, and where.
#[derive(Clone, Copy, Debug)]
pub enum Whom<'a> {
    /// Everybody on one CPU.
    Cpu(u32),
    /// One thread (0: the caller), on one CPU or wherever it runs.
    Thread(u32, Option<u32>),
    /// The members of a control group, on one CPU. The file is its folder, opened.
    Cgroup(BorrowedFd<'a>, u32),
}

/// An event the kernel counts or records, until it is dropped.
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// Open it; `leader` is the event of whose group it becomes a member.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says: `EACCES`/`EPERM` without the right, `ENOENT`/`EOPNOTSUPP` where
    /// the machine has no such counter, `EMFILE` when the process may not open more files, `ENODEV`
    /// for a CPU that is offline, `ESRCH` for a thread that is gone.
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
        // The kernel writes its own size of the structure back when it does not like ours.
        let mut attr = *attr;
        attr.size = ATTR_SIZE;
        // SAFETY: `attr` is a whole `perf_event_attr`, of which the kernel reads and writes `size`
        // bytes at most; that is less than the structure has.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(&mut attr, pid, cpu, leader, flags as _)
        };
        done(fd)?;
        // SAFETY: the call succeeded, so `fd` is open and nobody else has it.
        Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number that samples carry to say which event they are of.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0u64;
        // SAFETY: the kernel writes eight bytes.
        done(unsafe { ioctls::ID(self.raw(), &mut id) })?;
        Ok(id)
    }

    /// Have the records written into the ring of `other`, an event of the same CPU.
    pub fn redirect_to(&self, other: &Event) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::SET_OUTPUT(self.raw(), other.raw()) })
    }

    /// Start.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::ENABLE(self.raw(), 0) })
    }

    /// Stop.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::DISABLE(self.raw(), 0) })
    }

    /// Record only what the filter lets pass, in the language of ftrace's event filters.
    pub fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter)?;
        // SAFETY: the kernel reads up to the zero byte and writes nothing.
        done(unsafe { ioctls::SET_FILTER(self.raw(), filter.as_ptr().cast_mut()) })
    }

    /// Stop and resume the writing into the event's ring: an overwritable ring is read only while
    /// it stands still.
    pub fn pause_output(&self, pause: bool) -> io::Result<()> {
        // SAFETY: the argument is a number.
        done(unsafe { ioctls::PAUSE_OUTPUT(self.raw(), u32::from(pause)) })
    }

    /// What it stands at, in the form that its attribute asks for.
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

/// The attribute as a file holds it, in this machine's byte order.
pub fn attr_bytes(attr: &Attr) -> Vec<u8> {
    // SAFETY: the structure is plain data without padding, and larger than `ATTR_SIZE`.
    let bytes = unsafe {
        std::slice::from_raw_parts(std::ptr::from_ref(attr).cast::<u8>(), ATTR_SIZE as usize)
    };
    bytes.to_vec()
}

const _: () = assert!(size_of::<Attr>() >= ATTR_SIZE as usize);

/// What a system call returned, as a result.
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
