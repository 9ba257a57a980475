//! Threads that are split: each part takes the next piece of the work.

use super::{Machine, State, What};
use crate::bits::BitSet;
use crate::change::arrives;
use crate::program::Op;

/// The work of a split thread, in pieces: what each part takes next.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// Where each piece begins.
    starts: Vec<u32>,
    next: usize,
    end: u32,
    /// The threads that share them.
    pub(super) parts: Vec<u32>,
    /// Pieces with work in them that are not finished.
    open: u32,
    /// Parts that have a piece.
    busy: u32,
    /// A part sleeps until there is something to do: the pieces after that are not available yet.
    gate: Option<u32>,
    /// Parts that may get the next piece later.
    idle: Vec<u32>,
}

impl Machine<'_> {
    /// Create the parts of a split thread. Returns true if it has work to do.
    pub(super) fn split(&mut self, thread: u32) -> bool {
        let works = self.threads[thread as usize].works;
        let parts = self.view.parts[thread as usize];
        if parts < 2 {
            return works;
        }
        let program = self.view.program;
        let t = &program.threads[thread as usize];
        let starts = self.view.pieces(thread as usize);
        let open = starts.iter().filter(|&&start| works && start < t.work_to).count() as u32;
        // No part has a piece yet.
        let part = &mut self.threads[thread as usize];
        (part.at, part.end, part.works) = (t.to, t.to, false);
        let part = part.clone();
        let mut members = vec![thread];
        for _ in 1..parts {
            members.push(self.threads.len() as u32);
            self.threads.push(part.clone());
        }
        self.begun.get_or_insert_with(|| BitSet::new(program.numbers));
        let pieces = Pieces {
            starts,
            next: 0,
            end: t.to,
            parts: members,
            open,
            busy: 0,
            gate: None,
            idle: Vec::new(),
        };
        self.pieces.insert(thread, pieces);
        open > 0
    }

    /// Whether this was the split thread's last piece with work in it.
    pub(super) fn is_last_piece(&mut self, of: u32) -> bool {
        let Some(pieces) = self.pieces.get_mut(&of) else { return true };
        pieces.open = pieces.open.saturating_sub(1);
        pieces.open == 0
    }

    /// The thread is at the end of a piece. Returns false if there is no other piece, or not yet.
    pub(super) fn next_piece(&mut self, thread: u32) -> bool {
        let of = self.threads[thread as usize].of;
        let Some(pieces) = self.pieces.get_mut(&of) else {
            self.threads[thread as usize].state = State::Ended;
            return false;
        };
        if std::mem::take(&mut self.threads[thread as usize].in_piece) {
            pieces.busy -= 1;
            self.pieces_go_on(of);
        }
        let program = self.view.program;
        let Some(pieces) = self.pieces.get_mut(&of) else { return false };
        let Some(&from) = pieces.starts.get(pieces.next) else {
            self.threads[thread as usize].state = State::Ended;
            return false;
        };
        // An outside client does not ask again before it has its answer.
        let sleeps = arrives(program, program.ops[from as usize]);
        if pieces.gate.is_some() || sleeps && pieces.busy > 0 {
            pieces.idle.push(thread);
            self.threads[thread as usize].state = State::Idle;
            return false;
        }
        pieces.next += 1;
        pieces.busy += 1;
        let to = pieces.starts.get(pieces.next).copied().unwrap_or(pieces.end);
        pieces.gate = sleeps.then_some(from);
        let owner = &program.threads[of as usize];
        let t = &mut self.threads[thread as usize];
        (t.at, t.end, t.in_piece) = (from, to, true);
        t.works = owner.works && from < owner.work_to;
        t.held.clear();
        t.holding = 1.0;
        // The piece's work is for the thread whose wait it ends, and not done before that asks.
        if let Op::Wake { number, .. } = program.ops[to as usize - 1]
            && self.view.asked.contains(&number)
            && self.begun.as_ref().is_some_and(|begun| !begun.contains(number))
            && !self.ended.contains(number)
        {
            self.awaiting.insert(number, thread);
            self.threads[thread as usize].state = State::Arrived;
            return false;
        }
        true
    }

    /// The thread has slept. If it slept until there was something to do, other parts may be next.
    pub(super) fn has_slept(&mut self, thread: u32) {
        let t = &self.threads[thread as usize];
        let (of, at) = (t.of, t.at);
        if let Some(pieces) = self.pieces.get_mut(&of)
            && pieces.gate.is_some_and(|gate| at > gate)
            && self.threads[thread as usize].in_piece
        {
            pieces.gate = None;
            self.pieces_go_on(of);
        }
    }

    /// Parts that could not get a piece look again: not at once, because they may take the CPU that
    /// this thread is about to leave.
    fn pieces_go_on(&mut self, of: u32) {
        let idle = self.pieces.get_mut(&of).map(|p| std::mem::take(&mut p.idle));
        for part in idle.into_iter().flatten() {
            self.later(self.now, What::Wakes(part));
        }
    }
}
