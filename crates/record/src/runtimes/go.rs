//! Go's runtime: which functions are probed, and their arguments.

use super::{Elf, Probe, bytes_at, code_at, offsets};
use holdup_trace::{GO_FUNCTIONS, Runtime};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::collections::HashMap;
use std::ffi::CStr;

/// The first version that passes arguments in registers (`abi-internal.md`) on this architecture
/// and stores its version in the file in the place where it is looked for here.
const FIRST: (u32, u32) = (1, 18);
/// Maximal number of reasons for waiting: it is a byte.
const REASONS: u64 = 256;
/// Maximal length of a reason's text.
const LONGEST: u64 = 64;

/// The registers of the first three arguments, and of the current goroutine.
struct Registers {
    arguments: [u32; 3],
    task: u32,
}

/// `ax`, `bx`, `cx` and `r14`; `x0` to `x2` and `x28` (`PERF_REG_X86_*`, `PERF_REG_ARM64_*`).
const REGISTERS: Registers = if cfg!(target_arch = "aarch64") {
    Registers { arguments: [0, 1, 2], task: 28 }
} else {
    Registers { arguments: [0, 1, 2], task: 22 }
};

/// The version of Go that a file was built with, such as `1.26.8`; `None` for other files. For an
/// old version, which is stored elsewhere, an empty text.
pub(super) fn version(file: &Elf<'_>) -> Option<String> {
    const MAGIC: &[u8] = b"\xff Go buildinf:";
    const IN_LINE: u8 = 2;
    const TEXT: usize = 32;
    let section = file.section_by_name(".go.buildinfo")?;
    let info = section.data().ok().filter(|data| data.starts_with(MAGIC))?;
    if info.get(15)? & IN_LINE == 0 {
        return Some(String::new());
    }
    let length = *info.get(TEXT)? as usize;
    let text = info.get(TEXT + 1..)?.get(..length)?;
    let text = String::from_utf8_lossy(text);
    Some(text.strip_prefix("go").unwrap_or(&text).to_owned())
}

/// The probes in a file of this version, which must be openable at `path`.
pub(super) fn probes(
    file: &Elf<'_>,
    version: &str,
    pmu: u32,
    path: &CStr,
) -> Result<Vec<Probe>, String> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err("is for an architecture on which holdup does not know how Go passes arguments"
            .to_owned());
    }
    if holdup_trace::kernel_version(version).is_none_or(|version| version < FIRST) {
        return Err(format!("was built with a version of Go before {}.{}", FIRST.0, FIRST.1));
    }
    let names: Vec<String> = GO_FUNCTIONS.iter().map(|of| format!("runtime.{}", of.0)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut at = offsets(file, &names);
    if at.is_empty() {
        at = offsets_by_lines(file, &names).unwrap_or_default();
        // A probe within an instruction would break the program.
        at.retain(|_, offset| prologue(file, *offset) > 0);
    }
    if at.is_empty() {
        return Err("is stripped of the names of its functions".to_owned());
    }
    let missing: Vec<&str> = names.iter().copied().filter(|&name| !at.contains_key(name)).collect();
    if !missing.is_empty() {
        return Err(format!(
            "has no function {}: this version of Go is not known to holdup",
            missing.join(", ")
        ));
    }
    let reasons = reasons(file);
    let probe = |(&(function, does), name): (&(&str, Option<Runtime>), &&str)| Probe {
        name: format!("go:{function}"),
        pmu,
        path: path.to_owned(),
        offset: at[*name] + prologue(file, at[*name]),
        registers: registers(does),
        // The caller's stack shows the code that locks and unlocks; the scheduler has its own
        // stack.
        stack: matches!(does, None | Some(Runtime::GivesBack)),
        reasons: if does.is_none() { reasons.clone() } else { Vec::new() },
    };
    Ok(GO_FUNCTIONS.iter().zip(&names).map(probe).collect())
}

/// Start of functions in a file without symbols: the runtime itself needs their names, and stores
/// them next to the table of lines (`debug/gosym`, `runtime.pcHeader`), which no tool strips.
fn offsets_by_lines(file: &Elf<'_>, names: &[&str]) -> Option<HashMap<String, u64>> {
    /// Since Go 1.18, and since 1.20.
    const MAGIC: [u32; 2] = [0xffff_fff0, 0xffff_fff1];
    /// More functions than the largest programs have.
    const MOST: u64 = 1 << 22;
    let named = [".gopclntab", ".data.rel.ro.gopclntab"];
    let table = named.iter().find_map(|name| file.section_by_name(name))?;
    let table = table.data().ok()?;
    let short = |at: u64| Some(u32::from_le_bytes(*table.get(at as usize..)?.first_chunk()?));
    let long = |at: u64| Some(u64::from_le_bytes(*table.get(at as usize..)?.first_chunk()?));
    MAGIC.contains(&short(0)?).then_some(())?;
    let (functions, all_names, lines) = (long(8)?.min(MOST), long(32)?, long(64)?);
    let code = file.section_by_name(".text")?.address();
    let mut found = HashMap::new();
    for number in 0..functions {
        let entry = lines.checked_add(8 * number)?;
        let (begins, about) = (short(entry)?, short(entry + 4)?);
        let name = all_names.checked_add(short(lines.checked_add(about.into())? + 4)?.into())?;
        let name = table.get(name as usize..)?;
        // Names end with a zero; the wanted ones are short.
        let name = name.iter().take(LONGEST as usize).position(|&b| b == 0).map(|end| &name[..end]);
        let Some(name) = name.and_then(|name| str::from_utf8(name).ok()) else { continue };
        if names.contains(&name)
            && let Some(offset) = super::offset_of(file, code + u64::from(begins))
        {
            found.insert(name.to_owned(), offset);
        }
    }
    Some(found)
}

/// Address and maximal size of the texts by which the runtime says why goroutines wait, in a file
/// without symbols: found by the second text, which is known.
fn reasons_by_text(file: &Elf<'_>) -> Option<(u64, u64)> {
    const SECOND: &[u8] = b"GC assist marking";
    let texts = file.section_by_name(".rodata")?;
    let bytes = texts.data().ok()?;
    let holds = |address: u64, length: u64| {
        let within = address.checked_sub(texts.address()).map(|within| within as usize);
        let text = within.and_then(|within| bytes.get(within..)?.get(..length as usize));
        length == SECOND.len() as u64 && text == Some(SECOND)
    };
    let tables = [".data", ".noptrdata", ".rodata", ".data.rel.ro"];
    tables.iter().filter_map(|name| file.section_by_name(name)).find_map(|section| {
        let data = section.data().ok()?;
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let is_second = |at: &usize| {
            let pair = &data[*at..];
            word(&pair[8..]) == SECOND.len() as u64 && holds(word(pair), word(&pair[8..]))
        };
        let at = (16..data.len().saturating_sub(16)).step_by(8).find(is_second)?;
        Some((section.address() + at as u64 - 16, (data.len() - at + 16) as u64))
    })
}

/// Offset, from the start of a function, of the instruction that saves the frame pointer, if only
/// the check for stack space comes before it; else 0.
///
/// The kernel emulates that instruction. Any other one is executed out of line, in single-step
/// mode, which takes a second interrupt: twice as long, and on virtual machines ten times. Also, at
/// this instruction the kernel knows that the caller's address is not yet in a frame on the stack,
/// and adds it to the call chain.
fn prologue(file: &Elf<'_>, offset: u64) -> u64 {
    /// `cmp rsp, [r14+16]`, or the same with `r12`, which is below `rsp` for a large frame.
    const CHECKS: [&[u8]; 2] = [b"\x49\x3b\x66\x10", b"\x4d\x3b\x66\x10"];
    /// `lea r12, [rsp-n]`, n of one byte and of four.
    const BELOW: [(&[u8], usize); 2] = [(b"\x4c\x8d\x64\x24", 5), (b"\x4c\x8d\xa4\x24", 8)];
    /// `jbe`, near and far.
    const JUMPS: [(&[u8], usize); 2] = [(b"\x76", 2), (b"\x0f\x86", 6)];
    const PUSH: u8 = 0x55;
    if !cfg!(target_arch = "x86_64") {
        return 0;
    }
    let code = code_at(file, offset, 32).unwrap_or_default();
    let skip = |at: usize, of: &[(&[u8], usize)]| {
        let rest = code.get(at..).unwrap_or_default();
        of.iter().find(|(begins, _)| rest.starts_with(begins)).map_or(at, |of| at + of.1)
    };
    let at = skip(0, &BELOW);
    let at = skip(at, &CHECKS.map(|check| (check, check.len())));
    let at = skip(at, &JUMPS);
    if code.get(at) == Some(&PUSH) { at as u64 } else { 0 }
}

/// The registers with the arguments that are needed.
fn registers(does: Option<Runtime>) -> u64 {
    let [first, second, third] = REGISTERS.arguments.map(|bit| 1 << bit);
    match does {
        None => second | third | 1 << REGISTERS.task,
        Some(Runtime::Readies) => second,
        // At least one register is required.
        Some(_) => first,
    }
}

/// Why goroutines wait, indexed by the number passed to `gopark`: the texts of
/// `runtime.waitReasonStrings`, which differ between versions. Empty if they are not found.
fn reasons(file: &Elf<'_>) -> Vec<String> {
    read_reasons(file).unwrap_or_default()
}

fn read_reasons(file: &Elf<'_>) -> Option<Vec<String>> {
    let table = file.symbols().find(|s| s.name() == Ok("runtime.waitReasonStrings"));
    let table = table.map(|table| (table.address(), table.size()));
    let (from, size) = table.or_else(|| reasons_by_text(file))?;
    let size = size.min(REASONS * 16);
    let bytes = bytes_at(file, from, size)?;
    // Addresses in a position-independent program are relative to where it is loaded.
    let mut moved = HashMap::new();
    for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if at >= from && at - from < size && relocation.target() == RelocationTarget::Absolute {
            moved.insert(at, relocation.addend() as u64);
        }
    }
    let word = |bytes: &[u8]| bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
    let reason = |(number, pair): (u64, &[u8])| {
        let at = moved.get(&(from + number * 16)).copied().or_else(|| word(pair))?;
        let length = word(&pair[8..]).filter(|&length| length < LONGEST)?;
        if length == 0 {
            return Some(String::new());
        }
        let text = bytes_at(file, at, length)?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    // There may be anything after the last one.
    Some((0..).zip(bytes.chunks_exact(16)).map_while(reason).collect())
}
