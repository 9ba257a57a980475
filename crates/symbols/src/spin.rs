//! Whether code at an address spins: waits for another thread in a loop, without sleeping.
//!
//! Code that waits like this tells the CPU so, by an instruction made for it: `pause` on x86, and
//! `yield` or `isb` on Arm. Spin locks, adaptive mutexes, barriers and the runtimes of languages
//! all contain one, and code that works does not. So the bytes tell, and no list of names.
//!
//! A sample is the address of the next instruction, and `pause` takes longer than the rest of such
//! a loop. In recordings of `pthread_spin_lock`, adaptive mutexes of glibc, Go's `sync.Mutex`,
//! `std::hint::spin_loop` and barriers of libgomp, 60 to 100 of 100 samples in waiting code were at
//! the instruction after the `pause`. The others were at the other instructions of the loop: after
//! the load of the word that is waited for. On CPUs on which the pause takes no time, all are.
//!
//! The loop ends with a jump back to the pause or to a place before it. Its first such jump is
//! looked for in the bytes after the pause. A loop of more than 128 bytes does more than wait; the
//! longest that only waited took 124 bytes (libgomp). A loop that also runs when the lock is free
//! (`while (exchange(lock, 1)) pause;`) says less than the pause in it: see [`Spin`].
//!
//! x86 instructions have no fixed length, so bytes that look like a jump may belong to another
//! instruction. That can only move the end of the loop.

use crate::Options;
use crate::files::{Search, search};
use holdup_trace::{BuildId, Spin, Spot};
use object::Architecture;
use rustc_hash::FxHashMap;

/// A loop that only waits has at most this many bytes.
const FAR: usize = 128;

/// The instruction set of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// 32 and 64 bits.
    X86,
    /// The 64-bit instructions of Arm.
    Arm64,
}

impl Isa {
    fn of(architecture: Architecture) -> Option<Isa> {
        match architecture {
            Architecture::X86_64 | Architecture::X86_64_X32 | Architecture::I386 => Some(Isa::X86),
            Architecture::Aarch64 => Some(Isa::Arm64),
            _ => None,
        }
    }

    /// Length of a pause.
    fn pause(self) -> usize {
        match self {
            Isa::X86 => 2,
            Isa::Arm64 => 4,
        }
    }

    fn is_pause(self, code: &[u8], at: usize) -> bool {
        match self {
            Isa::X86 => code.get(at..at + 2) == Some(&[0xf3, 0x90]),
            // The options of `isb` do not matter.
            Isa::Arm64 => {
                word(code, at).is_some_and(|w| w == 0xd503_203f || w & !0xf00 == 0xd503_30df)
            }
        }
    }

    /// The bytes of a jump at `at`, and its target relative to `at`; `None` if there is none.
    fn jump(self, code: &[u8], at: usize) -> Option<(usize, i64)> {
        let near = |len: usize| Some((len, i64::from(*code.get(at + len - 1)? as i8)));
        let far = |len: usize| {
            let bytes = code.get(at + len - 4..at + len)?.first_chunk()?;
            Some((len, i64::from(i32::from_le_bytes(*bytes))))
        };
        let (len, by) = match (self, code.get(at)?) {
            (Isa::X86, 0x70..=0x7f | 0xe0..=0xe3 | 0xeb) => near(2)?,
            (Isa::X86, 0xe9) => far(5)?,
            (Isa::X86, 0x0f) if matches!(code.get(at + 1), Some(0x80..=0x8f)) => far(6)?,
            (Isa::X86, _) => return None,
            (Isa::Arm64, _) => return Some((4, arm_jump(word(code, at)?)?)),
        };
        Some((len, by + len as i64))
    }
}

fn word(code: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*code.get(at..at + 4)?.first_chunk()?))
}

/// The distance of a jump on Arm: `b`, `b.cond`, `cbz`, `cbnz`, `tbz`, `tbnz`.
fn arm_jump(word: u32) -> Option<i64> {
    let field = |low: u32, bits: u32| {
        let value = i64::from(word >> low & ((1 << bits) - 1));
        4 * if value >> (bits - 1) == 1 { value - (1 << bits) } else { value }
    };
    match word >> 24 {
        top if top & 0xfc == 0x14 => Some(field(0, 26)),
        0x54 => Some(field(5, 19)),
        top if top & 0x7e == 0x34 => Some(field(5, 19)),
        top if top & 0x7e == 0x36 => Some(field(5, 14)),
        _ => None,
    }
}

/// The end of the loop around the pause at `pause`, and its beginning.
fn around(isa: Isa, code: &[u8], pause: usize) -> Option<(usize, usize)> {
    let step = if isa == Isa::Arm64 { 4 } else { 1 };
    let after = pause + isa.pause();
    (after..after + FAR).step_by(step).find_map(|at| {
        let (len, by) = isa.jump(code, at)?;
        let to = usize::try_from(at as i64 + by).ok()?;
        let end = at + len;
        (to <= pause && end - to <= FAR).then_some((to, end))
    })
}

/// Whether a thread at this place of some code spins. `code` should have 128 bytes on both
/// sides; on Arm it begins with an instruction.
pub fn spins(isa: Isa, code: &[u8], at: usize) -> Option<Spin> {
    let len = isa.pause();
    let begins = isa.is_pause(code, at);
    if begins || at.checked_sub(len).is_some_and(|before| isa.is_pause(code, before)) {
        return Some(Spin::Pause);
    }
    let step = if isa == Isa::Arm64 { 4 } else { 1 };
    let from = at.saturating_sub(FAR) / step * step;
    (from..at + FAR).step_by(step).find_map(|pause| {
        let (from, end) = around(isa, code, pause).filter(|_| isa.is_pause(code, pause))?;
        (from <= at && at < end).then_some(Spin::Loop)
    })
}

/// Looks at the code of files, each opened once.
pub struct Spinners {
    options: Options,
    files: FxHashMap<(String, Option<BuildId>), Search>,
}

impl Spinners {
    /// A finder that looks for files in these places.
    pub fn new(options: Options) -> Spinners {
        Spinners { options, files: FxHashMap::default() }
    }

    /// Whether threads at this offset of a file spin: `None` if the file is not available,
    /// `Some(None)` if they do not.
    ///
    /// If the recording has no build id the file is used as it is: an address after a pause in
    /// another build than the recorded one would be a strange chance.
    pub fn at(&mut self, file: &str, build: Option<BuildId>, offset: u64) -> Option<Option<Spot>> {
        if self.options.off {
            return None;
        }
        let options = &self.options;
        let found = self.files.entry((file.to_owned(), build));
        let elf = found.or_insert_with(|| search(file, build, options)).elf.as_ref()?;
        let isa = Isa::of(elf.architecture()?)?;
        let at = usize::try_from(offset).ok()?;
        let from = at.saturating_sub(FAR + 8) / 4 * 4;
        let all = elf.bytes();
        let code = all.get(from..all.len().min(at.saturating_add(2 * FAR)))?;
        let Some(spin) = spins(isa, code, at - from) else { return Some(None) };
        let function = elf.address(offset).and_then(|address| elf.function(address));
        Some(Some(Spot { spin, function: function.unwrap_or_default() }))
    }

    /// The build id of a file that was looked at.
    pub fn build(&self, file: &str, build: Option<BuildId>) -> Option<BuildId> {
        self.files.get(&(file.to_owned(), build))?.elf.as_ref()?.build_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the instructions at these places are judged, in a longer piece of code.
    fn judged(isa: Isa, code: &[u8], places: &[usize]) -> Vec<Option<Spin>> {
        let mut all = vec![0; 256];
        all.extend(code);
        all.extend([0; 256]);
        places.iter().map(|at| spins(isa, &all, 256 + at)).collect()
    }

    const PAUSE: Option<Spin> = Some(Spin::Pause);
    const LOOP: Option<Spin> = Some(Spin::Loop);

    #[test]
    fn the_loop_of_a_spin_lock_spins_and_its_fast_path_does_not() {
        // pthread_spin_lock of glibc 2.36.
        let code = [
            0xf0, 0xff, 0x0f, // 0: lock decl (%rdi)
            0x75, 0x0b, // 3: jne 10
            0x31, 0xc0, // 5: xor %eax,%eax
            0xc3, // 7: ret
            0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, // nopl
            0xf3, 0x90, // 10: pause
            0x83, 0x3f, 0x00, // 12: cmpl $0,(%rdi)
            0x7f, 0xe9, // 15: jg 0
            0xeb, 0xf7, // 17: jmp 10
        ];
        let places = [0x10, 0x12, 0x15, 0x17, 0x19, 0x30];
        assert_eq!(judged(Isa::X86, &code, &places), [PAUSE, PAUSE, LOOP, None, None, None]);
        assert_eq!(judged(Isa::X86, &code, &[3]), [LOOP], "the first jump goes back to the lock");
    }

    #[test]
    fn a_pause_that_is_called_spins_without_a_loop() {
        // runtime.procyield of Go 1.24, and SpinPause of HotSpot.
        let go = [0xf3, 0x90, 0x83, 0xe8, 0x01, 0x75, 0xf9, 0xc3];
        assert_eq!(judged(Isa::X86, &go, &[0, 2, 5, 7]), [PAUSE, PAUSE, LOOP, None]);
        let java = [0xf3, 0x90, 0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0xc3];
        assert_eq!(judged(Isa::X86, &java, &[0, 2, 9]), [PAUSE, PAUSE, None]);
    }

    #[test]
    fn work_in_a_longer_loop_is_no_spinning() {
        // A pause in a cold branch that jumps back over 120 bytes of work.
        let mut code = vec![0x90; 120];
        code.extend([0xf3, 0x90, 0xe9]);
        code.extend((-(120 + 2 + 5_i32)).to_le_bytes());
        assert_eq!(judged(Isa::X86, &code, &[0, 119]), [LOOP, LOOP], "127 bytes may wait");
        let mut code = vec![0x90; 122];
        code.extend([0xf3, 0x90, 0xe9]);
        code.extend((-(122 + 2 + 5_i32)).to_le_bytes());
        assert_eq!(judged(Isa::X86, &code, &[0, 121, 124]), [None, None, PAUSE]);
        assert_eq!(judged(Isa::X86, &[0x90, 0x75, 0xfd], &[0, 1]), [None, None], "no pause");
    }

    #[test]
    fn loops_of_arm_are_known_by_yield_and_isb() {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        // 0: ldar w1, [x0]; 4: cbz w1, +12; 8: yield; 12: b 0; 16: ret
        let code = words(&[0x88df_fc01, 0x3400_0061, 0xd503_203f, 0x17ff_fffd, 0xd65f_03c0]);
        assert_eq!(judged(Isa::Arm64, &code, &[0, 4, 8, 12, 16]), [LOOP, LOOP, PAUSE, PAUSE, None]);
        // 0: isb; 4: ldar w1, [x0]; 8: cbnz w1, 0; 12: ret
        let code = words(&[0xd503_3fdf, 0x88df_fc01, 0x35ff_ffc1, 0xd65f_03c0]);
        assert_eq!(judged(Isa::Arm64, &code, &[0, 4, 8, 12]), [PAUSE, PAUSE, LOOP, None]);
        // 0: isb; 4: tbnz w1, #0, 0; and the same with b.ne.
        let code = words(&[0xd503_3fdf, 0xd503_201f, 0x3707_ffc1]);
        assert_eq!(judged(Isa::Arm64, &code, &[8, 12]), [LOOP, None]);
        let code = words(&[0xd503_3fdf, 0xd503_201f, 0x54ff_ffc1]);
        assert_eq!(judged(Isa::Arm64, &code, &[8, 12]), [LOOP, None]);
    }

    #[test]
    fn the_ends_of_code_are_no_defect() {
        for isa in [Isa::X86, Isa::Arm64] {
            for at in 0..6 {
                assert_eq!(spins(isa, &[0xeb, 0x80, 0xe9, 0x0f], at), None);
            }
        }
    }
}
