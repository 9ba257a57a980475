//! Call chains: separate records (`trace-cmd record -T`) after the events to which they belong.

use holdup_trace::{Frame, SymbolTable, is_recorder};
use holdup_tracepoint::{Abi, Endian, Format};

/// The position of a chain's addresses in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackPlan {
    /// Offset of the first address. The format states eight addresses, but a record has any number.
    from: usize,
    /// Offset of the number of addresses; without one, -1 ends them.
    count: Option<usize>,
    /// Size of an address in bytes.
    long: usize,
    /// Whether it is the program's chain, not the kernel's.
    pub(crate) user: bool,
}

impl StackPlan {
    /// The plan for records of one format; `None` if they are not chains.
    pub(crate) fn compile(format: &Format, abi: Abi) -> Option<StackPlan> {
        let user = match (format.system.as_str(), format.name.as_str()) {
            ("ftrace", "kernel_stack") => false,
            ("ftrace", "user_stack") => true,
            _ => return None,
        };
        let from = format.field("caller")?.offset as usize;
        let size = format.field("size").filter(|field| field.size == 4);
        let count = size.map(|field| field.offset as usize);
        Some(StackPlan { from, count, long: abi.long_size.into(), user })
    }

    /// The frames of a record, innermost first.
    pub(crate) fn frames<'a, E: Endian>(
        &self,
        payload: &'a [u8],
    ) -> impl Iterator<Item = Frame> + use<'a, E> {
        let StackPlan { from, count, long, user } = *self;
        let count = match count.filter(|at| at + 4 <= payload.len()) {
            Some(at) => E::u32(payload, at) as usize,
            None => usize::MAX,
        };
        let addresses = payload.get(from..).unwrap_or(&[]).chunks_exact(long.max(1)).take(count);
        let addresses = addresses.map(move |a| match long {
            8 => E::u64(a, 0),
            4 => E::u32(a, 0) as i32 as u64,
            _ => 0,
        });
        // Chains of programs end in zeros. Addresses of 32 bits were extended: -1 ends them, too.
        let addresses = addresses.take_while(|&a| a != 0 && a != u64::MAX);
        let narrow = move |a: u64| if long == 4 { a & u64::from(u32::MAX) } else { a };
        addresses.map(move |a| Frame { address: narrow(a), kernel: !user })
    }
}

/// Address ranges of the kernel functions that write events.
#[derive(Debug, Default)]
pub(crate) struct Recorders(Vec<(u64, u64)>);

impl Recorders {
    pub(crate) fn new(symbols: &SymbolTable) -> Recorders {
        Recorders(symbols.ranges(is_recorder))
    }

    pub(crate) fn contain(&self, address: u64) -> bool {
        let after = self.0.partition_point(|range| range.0 <= address);
        after.checked_sub(1).is_some_and(|at| address < self.0[at].1)
    }
}
