//! Threads that are split: each part takes the next piece of the work.

use super::{Machine, State};
use crate::bits::BitSet;
use crate::program::Op;

/// The work of a thread that is split, in pieces: what each part takes next.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// Where each begins.
    starts: Vec<u32>,
    next: usize,
    end: u32,
    /// The threads that share them.
    pub(super) parts: Vec<u32>,
}

impl Machine<'_> {
    /// Make the parts of a thread that is split.
    pub(super) fn split(&mut self, thread: u32) {
        let parts = self.view.parts[thread as usize];
        if parts < 2 {
            return;
        }
        let program = self.view.program;
        let t = &program.threads[thread as usize];
        let ops = &program.ops[t.from as usize..t.to as usize];
        // A piece of its work ends when it has woken somebody: the one who asked for it.
        let mut starts = if ops.is_empty() { Vec::new() } else { vec![t.from] };
        let ends = ops.iter().zip(t.from + 1..).filter(|(op, _)| matches!(op, Op::Wake { .. }));
        starts.extend(ends.map(|(_, next)| next).filter(|&next| next < t.to));
        // None has a piece yet.
        let part = &mut self.threads[thread as usize];
        (part.at, part.end) = (t.to, t.to);
        let part = part.clone();
        let mut members = vec![thread];
        for _ in 1..parts {
            members.push(self.threads.len() as u32);
            self.threads.push(part.clone());
        }
        self.begun.get_or_insert_with(|| BitSet::new(program.numbers));
        self.pieces.insert(thread, Pieces { starts, next: 0, end: t.to, parts: members });
    }

    /// The thread has come to the end of a piece of its program. False if there is no other.
    pub(super) fn next_piece(&mut self, thread: u32) -> bool {
        let of = self.threads[thread as usize].of;
        let work_to = self.view.program.threads[of as usize].work_to;
        let piece = self.pieces.get_mut(&of).and_then(|p| {
            let from = *p.starts.get(p.next)?;
            p.next += 1;
            Some((from, p.starts.get(p.next).copied().unwrap_or(p.end)))
        });
        let Some((from, to)) = piece else {
            let t = &mut self.threads[thread as usize];
            t.state = State::Ended;
            if t.works {
                self.has_worked(thread);
            }
            return false;
        };
        let t = &mut self.threads[thread as usize];
        if t.works && from >= work_to {
            self.has_worked(thread);
        }
        let t = &mut self.threads[thread as usize];
        (t.at, t.end) = (from, to);
        // Its work is for the one whose wait it ends: nobody works for who has not asked yet.
        if let Op::Wake { thread: client, number } = self.view.program.ops[to as usize - 1]
            && self.view.asks(client, of)
            && self.begun.as_ref().is_some_and(|begun| !begun.contains(number))
            && !self.ended.contains(number)
        {
            self.awaiting.insert(number, thread);
            self.threads[thread as usize].state = State::Arrived;
            return false;
        }
        true
    }
}
