//! User probes in runtimes, as `holdup record --runtime-locks` sets them.
//!
//! They are events of the kernel's `uprobe` PMU, whose number differs on every machine, so the
//! event's name identifies them. Their samples have the registers at the start of a function, which
//! hold its arguments.

use crate::attr::Attr;
use crate::format::{kind, sample};
use crate::layout::Layout;
use holdup_trace::{GO_FUNCTIONS, JAVA_FUNCTIONS, Parked, Runtime, TraceInfo, What};
use holdup_tracepoint::Endian;

/// The systems to which events of Go's runtime and of HotSpot belong.
const GO: &str = "go";
const JAVA: &str = "java";

/// Where Go passes the first three arguments of a function, as bits of `regs_user`
/// (`src/cmd/compile/abi-internal.md`): `ax`, `bx`, `cx`; `x0` to `x2`.
const X86_64: [u32; 3] = [0, 1, 2];
const ARM64: [u32; 3] = [0, 1, 2];
/// Where Go keeps the running goroutine: `r14`, `x28`.
const X86_64_TASK: u32 = 22;
const ARM64_TASK: u32 = 28;
/// Where C++ passes `this`: `di`, `x0`.
const X86_64_THIS: u32 = 5;
const ARM64_THIS: u32 = 0;

/// A probe at the beginning of a function.
#[derive(Debug)]
pub(crate) struct Probe {
    /// `None`: the function parks a task.
    does: Option<Runtime>,
    /// Indexes of the first three arguments, and of the task, among a sample's register words.
    arguments: [Option<u16>; 3],
    task: Option<u16>,
    /// Meaning of the numbers that say why a task is parked.
    parked: Vec<Parked>,
}

/// The system of a runtime's event, and what the probed function does.
pub(crate) fn function(a: &Attr) -> Option<(&'static str, Option<Runtime>)> {
    let name = a.name.as_deref().filter(|_| a.kind > kind::BREAKPOINT)?;
    let (system, function) = name.split_once(':')?;
    let of_go = || GO_FUNCTIONS.iter().find(|of| of.0 == function).map(|of| (GO, of.1));
    let of_java = || JAVA_FUNCTIONS.iter().find(|of| of.0 == function).map(|of| (JAVA, Some(of.1)));
    match system {
        GO => of_go(),
        JAVA => of_java(),
        _ => None,
    }
}

impl Probe {
    /// The probe of event `number`; `None` if it is no probe or its samples lack the registers.
    pub(crate) fn of(a: &Attr, number: usize, info: &TraceInfo) -> Option<Probe> {
        let has = |bits: u64| a.sample_type & bits == bits;
        let registers = has(sample::REGS_USER) && !has(sample::BRANCH_STACK);
        let (system, does) = function(a).filter(|_| registers)?;
        let arm = matches!(info.arch.as_deref(), Some("aarch64" | "arm64"));
        let (arguments, task) = match (system, arm) {
            (JAVA, true) => ([ARM64_THIS; 3], ARM64_TASK),
            (JAVA, false) => ([X86_64_THIS; 3], X86_64_TASK),
            (_, true) => (ARM64, ARM64_TASK),
            (_, false) => (X86_64, X86_64_TASK),
        };
        // Registers are stored in the order of their bits.
        let word = |bit: u32| {
            let below = (a.regs_user & ((1 << bit) - 1)).count_ones() as u16;
            (a.regs_user >> bit & 1 != 0).then_some(below)
        };
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        Some(Probe {
            does,
            arguments: arguments.map(word),
            task: word(task),
            parked: info.runtimes.parked(number),
        })
    }

    /// What a sample of the probe says; `None` if it is too short or has no registers.
    pub(crate) fn decode<E: Endian>(&self, layout: &Layout, rec: &[u8]) -> Option<What> {
        let (_, end) = layout.payload::<E>(rec)?;
        let registers = rec.get(end..)?;
        // The ABI precedes the registers; it is 0 if there are none.
        let abi = registers.first_chunk::<8>().map(|word| E::u64(word, 0));
        abi.filter(|&abi| abi != 0)?;
        let word = |at: Option<u16>| {
            let from = 8 + 8 * usize::from(at?);
            registers.get(from..from + 8).map(|word| E::u64(word, 0))
        };
        let [first, second, third] = self.arguments.map(word);
        Some(match self.does {
            None => {
                // The reason is one byte; the upper bytes of the register are stale.
                let reason = (third? & 0xff) as usize;
                let why = self.parked.get(reason).copied().unwrap_or(Parked::Runtime);
                What::TaskParks { task: word(self.task)?, on: second?, why }
            }
            Some(does @ Runtime::Readies) => What::Runtime { does, with: second? },
            Some(does @ Runtime::Idles) => What::Runtime { does, with: 0 },
            Some(does) => What::Runtime { does, with: first? },
        })
    }
}
