//! What an object is.

/// What an object is, in the words of the `kind` column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ObjectKind {
    /// Not known from the trace.
    #[default]
    Other,
    /// A word of memory.
    Futex,
    /// A set of System V semaphores.
    Semop,
    /// A System V message queue.
    MessageQueue,
    /// A POSIX message queue.
    Mqueue,
    /// A file locked whole.
    Flock,
    /// A lock on a whole file.
    PosixLock,
    /// A lock that threads try for between naps, in ways that the trace does not show.
    PolledLock,
    /// A pipe or terminal that a thread writes to.
    Pipe,
    /// A socket.
    Socket,
    /// A listening socket.
    Accept,
    /// An eventfd.
    Eventfd,
    /// A timerfd.
    Timerfd,
    /// A file.
    File,
    /// A descriptor made before the trace began.
    Descriptor,
    /// An epoll instance.
    Epoll,
    /// One of several descriptors.
    Poll,
    /// The end of a child.
    Child,
    /// A time.
    Timer,
    /// A signal.
    Signal,
    /// A device.
    Disk,
    /// A page of memory.
    PageFault,
    /// A lock of the kernel itself.
    KernelLock,
    /// Something in the kernel that ends sleeps in D state: only the function slept in is known, or
    /// nothing.
    Uninterruptible,
}

impl ObjectKind {
    /// The name in the tables.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Other => "other",
            ObjectKind::Futex => "futex",
            ObjectKind::Semop => "semop",
            ObjectKind::MessageQueue => "msgq",
            ObjectKind::Mqueue => "mqueue",
            ObjectKind::Flock => "flock",
            ObjectKind::PosixLock => "posix-lock",
            ObjectKind::PolledLock => "polled-lock",
            ObjectKind::Pipe => "pipe",
            ObjectKind::Socket => "socket",
            ObjectKind::Accept => "accept",
            ObjectKind::Eventfd => "eventfd",
            ObjectKind::Timerfd => "timerfd",
            ObjectKind::File => "file",
            ObjectKind::Descriptor => "fd",
            ObjectKind::Epoll => "epoll",
            ObjectKind::Poll => "poll",
            ObjectKind::Child => "child",
            ObjectKind::Timer => "timer",
            ObjectKind::Signal => "signal",
            ObjectKind::Disk => "disk",
            ObjectKind::PageFault => "page-fault",
            ObjectKind::KernelLock => "kernel-lock",
            ObjectKind::Uninterruptible => "uninterruptible",
        }
    }
}
