//! Where what belongs to an event, and is too large for it, is in its batch.

/// Where a [`crate::What::SysEnter`]'s arguments are in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgsRef(pub(crate) u32);

impl ArgsRef {
    /// The event came without arguments.
    pub const NONE: ArgsRef = ArgsRef(u32::MAX);
}

/// Where an event's call chain is in its batch: innermost address first, those in the kernel before
/// those in the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackRef {
    pub(crate) start: u32,
    pub(crate) len: u16,
    /// How many of them are in the kernel.
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

/// Where a [`crate::What::Mapped`]'s mapping is in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappingRef(pub(crate) u32);

/// Where the readings of a [`crate::What::Readings`] are in its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadingsRef {
    pub(crate) start: u32,
    pub(crate) len: u16,
}
