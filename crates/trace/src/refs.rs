//! References to the data of an event that is too large for the event and is in its batch.

/// Place of a [`crate::What::SysEnter`]'s arguments in its batch. The first argument is here too:
/// it is all that most calls are asked for, and the batch is usually in another core's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgsRef {
    pub(crate) first: u64,
    pub(crate) at: u32,
}

impl ArgsRef {
    /// The event came without arguments.
    pub const NONE: ArgsRef = ArgsRef { first: 0, at: u32::MAX };

    /// The first argument, if the trace has the arguments.
    #[inline(always)]
    pub fn first(self) -> Option<u64> {
        (self.at != u32::MAX).then_some(self.first)
    }
}

/// Place of an event's call chain in its batch: innermost address first, kernel addresses before
/// user addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackRef {
    pub(crate) start: u32,
    pub(crate) len: u16,
    /// How many of the addresses are in the kernel.
    pub(crate) kernel: u16,
}

impl StackRef {
    /// The event came without a call chain.
    pub const NONE: StackRef = StackRef { start: 0, len: 0, kernel: 0 };

    /// Whether there is no address.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// How many of the addresses, from the innermost on, are in the kernel.
    pub fn in_kernel(self) -> usize {
        self.kernel.into()
    }
}

/// Place of a [`crate::What::Mapped`]'s mapping in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingRef(pub(crate) u32);

/// Place of the readings of a [`crate::What::Readings`] in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadingsRef {
    pub(crate) start: u32,
    pub(crate) len: u16,
}
