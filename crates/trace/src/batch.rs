//! A recycled block of decoded events.

use crate::{
    ArgsRef, Event, EventId, Mapping, MappingRef, NameId, Nanos, Quality, ReadingsRef, StackRef,
};

/// One address of a call chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Address of the code.
    pub address: u64,
    /// It is an address in the kernel.
    pub kernel: bool,
}

impl Frame {
    /// A frame of a format that does not distinguish kernel and user: on 64-bit machines the upper
    /// half of the addresses is the kernel's.
    pub fn by_half(address: u64) -> Frame {
        Frame { address, kernel: address >> 63 != 0 }
    }
}

/// The trace's own name of the code at an address: perf's text has names and no mappings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameName {
    /// The file, as perf spells it: a path, `[kernel.kallsyms]`, `[ext4]`; [`NameId::NONE`] if the
    /// trace does not say.
    pub dso: NameId,
    /// The function, without the offset in it; [`NameId::NONE`] if the trace does not say.
    pub function: NameId,
}

/// The value of one counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The event of the file that the counter counts.
    pub event: EventId,
    /// Which of the event's counters it is, over all CPUs: a small number from 0 on that is the
    /// same in every reading of one counter and differs between counters.
    pub instance: u32,
    /// The count since the counter was opened.
    pub value: u64,
    /// How long it was enabled until now, and how long it counted: less if counters were
    /// multiplexed. `None` if the file does not say.
    pub enabled_running: Option<(Nanos, Nanos)>,
}

/// A block of events of one run, in time order, with the payloads too large for [`Event`].
///
/// Batches are recycled: [`Batch::clear`] keeps their memory.
#[derive(Default, Debug)]
pub struct Batch {
    /// The events, ascending in time.
    pub events: Vec<Event>,
    /// What went wrong while decoding this block; the merge adds it up.
    pub quality: Quality,
    args: Vec<[u64; 6]>,
    stacks: Vec<u64>,
    /// Names of the frames in `stacks`, as far as the latest chain that has any.
    frame_names: Vec<FrameName>,
    readings: Vec<Reading>,
    mappings: Vec<Mapping>,
}

impl Batch {
    /// How many events a decoder should aim for: enough to pay for the hand-over between threads,
    /// few enough to stay in the second-level cache.
    pub const TARGET: usize = 8192;

    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Removes the content, keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.args.clear();
        self.stacks.clear();
        self.frame_names.clear();
        self.readings.clear();
        self.mappings.clear();
        self.quality.clear();
    }

    /// Whether the decoder has filled the batch.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.events.len() >= Self::TARGET
    }

    /// Stores the arguments of a system call.
    #[inline(always)]
    pub fn push_args(&mut self, args: [u64; 6]) -> ArgsRef {
        self.args.push(args);
        ArgsRef { first: args[0], at: self.args.len() as u32 - 1 }
    }

    /// The arguments of a syscall, if the trace has them.
    #[inline]
    pub fn args(&self, r: ArgsRef) -> Option<&[u64; 6]> {
        self.args.get(r.at as usize)
    }

    /// Stores a call chain, innermost frame first; frames beyond 65,535 are dropped.
    pub fn push_stack(&mut self, frames: impl IntoIterator<Item = Frame>) -> StackRef {
        self.extend_stack(StackRef { start: self.stacks.len() as u32, len: 0, kernel: 0 }, frames)
    }

    /// Stores `chain`, which is in this batch, with more frames after its outermost.
    pub fn extend_stack(
        &mut self,
        chain: StackRef,
        more: impl IntoIterator<Item = Frame>,
    ) -> StackRef {
        let StackRef { start, len, mut kernel } = chain;
        let range = start as usize..start as usize + len as usize;
        let start = match range.end == self.stacks.len() {
            true => range.start,
            false => {
                let start = self.stacks.len();
                let (from, to) = (range.start.min(start), range.end.min(start));
                self.stacks.extend_from_within(from..to);
                start
            }
        };
        let room = u16::MAX as usize - (self.stacks.len() - start);
        for frame in more.into_iter().take(room) {
            // The kernel's frames end where the program's begin.
            kernel += (frame.kernel && kernel as usize == self.stacks.len() - start) as u16;
            self.stacks.push(frame.address);
        }
        StackRef { start: start as u32, len: (self.stacks.len() - start) as u16, kernel }
    }

    /// Stores a call chain whose frames the trace names. Otherwise like [`Batch::push_stack`].
    pub fn push_named_stack(
        &mut self,
        frames: impl IntoIterator<Item = (Frame, FrameName)>,
    ) -> StackRef {
        self.frame_names.resize(self.stacks.len(), FrameName::default());
        let mut names = std::mem::take(&mut self.frame_names);
        let frames = frames.into_iter().take(u16::MAX as usize);
        let chain = self.push_stack(frames.map(|(frame, name)| {
            names.push(name);
            frame
        }));
        self.frame_names = names;
        chain
    }

    /// The trace's names for the frames of a call chain, in its order; empty if it has none.
    pub fn frame_names(&self, r: StackRef) -> &[FrameName] {
        let start = r.start as usize;
        self.frame_names.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// A call chain, innermost address first; empty if none was recorded.
    pub fn stack(&self, r: StackRef) -> &[u64] {
        let start = r.start as usize;
        self.stacks.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// Stores the values of a group's counters; values beyond 65,535 are dropped.
    pub fn push_readings(&mut self, readings: impl IntoIterator<Item = Reading>) -> ReadingsRef {
        let start = self.readings.len();
        self.readings.extend(readings.into_iter().take(u16::MAX as usize));
        ReadingsRef { start: start as u32, len: (self.readings.len() - start) as u16 }
    }

    /// The values of a group's counters.
    pub fn readings(&self, r: ReadingsRef) -> &[Reading] {
        let start = r.start as usize;
        self.readings.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// Stores a mapping.
    pub fn push_mapping(&mut self, mapping: Mapping) -> MappingRef {
        self.mappings.push(mapping);
        MappingRef(self.mappings.len() as u32 - 1)
    }

    /// A mapping; `None` for a reference from another batch.
    pub fn mapping(&self, r: MappingRef) -> Option<&Mapping> {
        self.mappings.get(r.0 as usize)
    }
}
