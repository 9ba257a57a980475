//! A recycled block of decoded events.

use crate::{
    ArgsRef, Event, EventId, Mapping, MappingRef, NameId, Nanos, Quality, ReadingsRef, StackRef,
};

/// One address of a call chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where the code is.
    pub address: u64,
    /// It is the kernel's.
    pub kernel: bool,
}

impl Frame {
    /// A frame of a format that does not say whose it is: on machines of 64 bits the upper half of
    /// the addresses is the kernel's.
    pub fn by_half(address: u64) -> Frame {
        Frame { address, kernel: address >> 63 != 0 }
    }
}

/// What a trace itself calls the code at an address: text of perf has names and no mappings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameName {
    /// The file, as perf spells it: a path, `[kernel.kallsyms]`, `[ext4]`; [`NameId::NONE`] if the
    /// trace does not say.
    pub dso: NameId,
    /// The function, without the offset in it; [`NameId::NONE`] if the trace does not say.
    pub function: NameId,
}

/// What one counter stood at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// Which of the file's events it counts.
    pub event: EventId,
    /// Which of the event's counters it is, of those on every CPU: a number from 0 on, close
    /// together, the same in every reading of one counter and in none of another.
    pub instance: u32,
    /// The count since the counter was opened.
    pub value: u64,
    /// How long it was meant to count until now, and how long it did: less if several counters
    /// took turns. `None` where the file does not say.
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

    /// Forget the content, keep the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.args.clear();
        self.stacks.clear();
        self.frame_names.clear();
        self.readings.clear();
        self.mappings.clear();
        self.quality.clear();
    }

    /// Whether the decoder has done its share.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.events.len() >= Self::TARGET
    }

    /// Keep the arguments of a syscall.
    #[inline]
    pub fn push_args(&mut self, args: [u64; 6]) -> ArgsRef {
        self.args.push(args);
        ArgsRef(self.args.len() as u32 - 1)
    }

    /// The arguments of a syscall, if the trace has them.
    #[inline]
    pub fn args(&self, r: ArgsRef) -> Option<&[u64; 6]> {
        self.args.get(r.0 as usize)
    }

    /// Keep a call chain, innermost frame first; what exceeds 65,535 frames is dropped.
    pub fn push_stack(&mut self, frames: impl IntoIterator<Item = Frame>) -> StackRef {
        self.extend_stack(StackRef { start: self.stacks.len() as u32, len: 0, kernel: 0 }, frames)
    }

    /// Keep `chain`, of this batch, with more frames behind its outermost.
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
            // The kernel's end where the program's begin.
            kernel += (frame.kernel && kernel as usize == self.stacks.len() - start) as u16;
            self.stacks.push(frame.address);
        }
        StackRef { start: start as u32, len: (self.stacks.len() - start) as u16, kernel }
    }

    /// Keep a call chain whose frames the trace names. Otherwise as [`Batch::push_stack`].
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

    /// What the trace calls the frames of a call chain, in its order; empty if it does not say.
    pub fn frame_names(&self, r: StackRef) -> &[FrameName] {
        let start = r.start as usize;
        self.frame_names.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// A call chain, innermost address first; empty if none was recorded.
    pub fn stack(&self, r: StackRef) -> &[u64] {
        let start = r.start as usize;
        self.stacks.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// Keep what the counters of a group stood at; what exceeds 65,535 of them is dropped.
    pub fn push_readings(&mut self, readings: impl IntoIterator<Item = Reading>) -> ReadingsRef {
        let start = self.readings.len();
        self.readings.extend(readings.into_iter().take(u16::MAX as usize));
        ReadingsRef { start: start as u32, len: (self.readings.len() - start) as u16 }
    }

    /// What the counters of a group stood at.
    pub fn readings(&self, r: ReadingsRef) -> &[Reading] {
        let start = r.start as usize;
        self.readings.get(start..start + r.len as usize).unwrap_or(&[])
    }

    /// Keep what was mapped.
    pub fn push_mapping(&mut self, mapping: Mapping) -> MappingRef {
        self.mappings.push(mapping);
        MappingRef(self.mappings.len() as u32 - 1)
    }

    /// What was mapped; `None` of a reference from another batch.
    pub fn mapping(&self, r: MappingRef) -> Option<&Mapping> {
        self.mappings.get(r.0 as usize)
    }
}
