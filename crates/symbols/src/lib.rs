//! Names of functions and source lines for the addresses in a trace.
//!
//! ```text
//!  address ── mapping ──► offset in a file ── ELF segments ──► virtual address ──► function, line
//!          └─ of the kernel ──► kallsyms    └─ no file ──► perf-PID.map
//! ```
//!
//! A trace has addresses, and says which file was mapped where. The file itself must be found on
//! this machine, and its build id must match the recorded one. Files are looked for once, when
//! their first address is named; nothing goes over the network.
//!
//! `object` and `gimli` read ELF and DWARF from bytes: holdup maps files in a way that survives
//! truncation (`holdup-map`), and limits the memory that hostile files can demand. Libraries that
//! open files themselves allow neither.

mod demangle;
mod elf;
mod files;
mod inline;
mod kernel;
mod lines;
mod spin;
mod table;
mod text;
mod variables;

use elf::Elf;
use files::{Search, search};
use holdup_trace::{BuildId, FrameName, Mapping, NameId, Pid, TraceInfo};
use kernel::Kernel;
use lines::Lines;
use rustc_hash::FxHashMap;
pub use spin::{Isa, Spinners, spins};
use std::cell::OnceCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use text::Listed;
pub use variables::Variables;

/// Where to look for files.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The root of the recorded machine's files, used in place of this machine's root.
    pub symfs: Option<PathBuf>,
    /// A copy of the recorded kernel's `/proc/kallsyms`.
    pub kallsyms: Option<PathBuf>,
    /// The home folder, with perf's cache (`.debug`) and debuginfod's.
    pub home: Option<PathBuf>,
    /// Open no file: name only what is mapped.
    pub off: bool,
    /// Do not look for inlined functions.
    pub no_inline: bool,
}

/// An address at which code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// The process.
    pub pid: Pid,
    /// The mapping at that time; `None` if the trace does not say.
    pub mapping: Option<Mapping>,
    /// Its name in the trace itself, for which no file is needed.
    pub named: Option<FrameName>,
    /// The address.
    pub address: u64,
    /// Whether it is kernel code.
    pub kernel: bool,
}

/// The name of an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The file, without folders, as perf spells it: `libc.so.6`, `[kernel.kallsyms]`.
    pub dso: Option<Arc<str>>,
    /// The function.
    pub function: Option<Arc<str>>,
}

/// A location in source code.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The file, with the folders that the debug information has.
    pub file: Arc<str>,
    /// The line, from 1 on.
    pub line: u32,
}

impl fmt::Display for Source {
    /// `file.c:12`, without folders.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.rsplit('/').next().unwrap_or_default();
        write!(f, "{file}:{}", self.line)
    }
}

/// One of the functions whose code is at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name; `None` if it is unknown.
    pub function: Option<Arc<str>>,
    /// The location in its source.
    pub source: Option<Source>,
    /// Whether the compiler inlined it into the function that follows.
    pub inlined: bool,
}

/// For fuzzing: does everything that is done with a file, with `bytes` as its content.
#[doc(hidden)]
pub fn try_all(bytes: &[u8]) {
    let addresses = || (0..64).map(|i| i * 0x100).chain([u64::MAX, u64::MAX >> 1]);
    if let Some(elf) = Elf::parse(holdup_map::Bytes::Memory(bytes.to_vec())) {
        let lines = Lines::new(&elf);
        for address in addresses().filter_map(|offset| elf.address(offset)).chain(addresses()) {
            elf.function(address);
            elf.called(address);
            elf.variable(address);
            lines.as_ref().map(|lines| lines.inlined(address));
        }
    }
    for listed in [Listed::of_kallsyms(bytes.to_vec()), Listed::of_perf_map(bytes.to_vec())] {
        addresses().for_each(|address| {
            listed.function(address);
        });
    }
}

/// A file that has been looked for.
struct Module {
    dso: Arc<str>,
    found: Search,
    lines: OnceCell<Option<Lines>>,
}

/// Finds names and caches them.
pub struct Symbols<'a> {
    info: &'a TraceInfo,
    options: Options,
    /// The mapping of the kernel's own code.
    text: Option<Mapping>,
    kernel: OnceCell<Kernel>,
    modules: FxHashMap<(NameId, Option<BuildId>), Module>,
    compiled: FxHashMap<Pid, Option<Listed>>,
    /// Names for mappings without a file.
    dsos: FxHashMap<NameId, Arc<str>>,
    known: FxHashMap<Code, Named>,
}

impl<'a> Symbols<'a> {
    /// A finder for the addresses of a trace. `text` is the mapping of the kernel's own code, if
    /// the trace has one.
    pub fn new(info: &'a TraceInfo, text: Option<Mapping>, options: Options) -> Symbols<'a> {
        Symbols {
            info,
            options,
            text,
            kernel: OnceCell::new(),
            modules: FxHashMap::default(),
            compiled: FxHashMap::default(),
            dsos: FxHashMap::default(),
            known: FxHashMap::default(),
        }
    }

    /// The name of the code at an address.
    pub fn name(&mut self, code: &Code) -> Named {
        if let Some(known) = self.known.get(code) {
            return known.clone();
        }
        let named = match (code.named, code.kernel) {
            (Some(named), kernel) => self.name_as_written(named, kernel),
            (None, true) => self.name_kernel(code),
            (None, false) => self.name_user(code),
        };
        self.known.insert(*code, named.clone());
        named
    }

    /// The function called by the instruction before `back`, which is a return address; `None` if
    /// the instruction does not contain the target, or the file is not available. A function
    /// without a frame pointer hides its caller from a chain of return addresses: the chain's next
    /// address is then the one to which that caller returns, and this finds the caller's name.
    pub fn called(&mut self, back: &Code) -> Option<Named> {
        let mapping = back.mapping.filter(|_| !back.kernel && !self.options.off)?;
        let Named { dso, .. } = self.name(back);
        let (module, address) = self.place(&mapping, back.address)?;
        let function = module.called(address).map(Arc::from)?;
        Some(Named { dso, function: Some(function) })
    }

    /// The source location of the code at an address, after [`Symbols::name`] was called for it;
    /// `None` if unknown, as for the kernel.
    pub fn line(&self, code: &Code) -> Option<Source> {
        let (lines, address) = self.lines(code)?;
        lines.find(address)
    }

    /// The functions whose code is at an address: first the inlined ones, each inlined into the
    /// next, and last the one that [`Symbols::name`] returns, whose name is returned too. A return
    /// address stands for its call if the function is the same, because the code after the call may
    /// belong to another line.
    pub fn functions(&mut self, code: &Code, returns: bool) -> (Named, Vec<Function>) {
        let named = self.name(code);
        let call = Code { address: code.address.saturating_sub(1), ..*code };
        let of_call = returns && self.name(&call) == named;
        let (mut functions, source) = match self.lines(if of_call { &call } else { code }) {
            None => Default::default(),
            Some((lines, address)) if self.options.no_inline => (Vec::new(), lines.find(address)),
            Some((lines, address)) => lines.inlined(address),
        };
        functions.push(Function { function: named.function.clone(), source, inlined: false });
        (named, functions)
    }

    /// Whether the name of an address in this mapping depends on the process; names from files do
    /// not.
    pub fn depends_on_process(&self, mapping: &Mapping) -> bool {
        is_anonymous(&self.info.names.get(mapping.file))
    }

    /// The line finder of the file at an address, and the virtual address in it.
    fn lines(&self, code: &Code) -> Option<(&Lines, u64)> {
        let mapping = code.mapping.filter(|_| !code.kernel && !self.options.off)?;
        let (module, address) = self.place(&mapping, code.address)?;
        let lines = module.lines.get_or_init(|| {
            let files = [module.found.elf.as_ref(), module.found.debug.as_ref()];
            files.into_iter().flatten().find_map(Lines::new)
        });
        Some((lines.as_ref()?, address))
    }

    /// Notes for readers of the names: files that were refused, unverified, or not found.
    pub fn remarks(&self) -> Vec<String> {
        let mut modules: Vec<_> = self.modules.iter().collect();
        modules.sort_by(|a, b| (&a.1.dso, a.0.1).cmp(&(&b.1.dso, b.0.1)));
        let mut remarks = Vec::new();
        let (mut missing, mut unverified) = (Vec::new(), Vec::new());
        for ((_, build), module) in modules {
            if let Some(path) = &module.found.unverified {
                unverified.push(user_dso(&path.to_string_lossy()));
            }
            let named = module.found.elf.is_some() || module.found.debug.is_some();
            match (named, module.found.refused.first(), build) {
                (true, ..) => {}
                (false, Some((path, here)), Some(build)) => remarks.push(format!(
                    "{}: is not the recorded file: its build id is {}, the recorded build id is \
                     {build}",
                    path.display(),
                    here.map_or("none".to_owned(), |id| id.to_string()),
                )),
                _ => missing.push(&*module.dso),
            }
        }
        if !unverified.is_empty() {
            remarks.push(format!(
                "unverified, because the trace has no build id for: {}",
                few(&unverified)
            ));
        }
        let made = self.compiled.iter().filter(|(_, listed)| listed.is_some());
        let mut made: Vec<String> = made.map(|(pid, _)| format!("perf-{pid}.map")).collect();
        if !made.is_empty() {
            made.sort();
            remarks.push(format!(
                "unverified, because the time of writing is not known: {}",
                few(&made)
            ));
        }
        if !missing.is_empty() {
            missing.dedup();
            remarks.push(format!("not found, so their functions are not known: {}", few(&missing)));
        }
        if self.kernel.get().is_some_and(Kernel::is_unknown) {
            remarks.push(
                "no list of the recorded kernel's functions was found; name a list with --kallsyms"
                    .to_owned(),
            );
        }
        remarks
    }

    /// The name of code that the trace itself names, spelled as if found in a file.
    fn name_as_written(&mut self, named: FrameName, kernel: bool) -> Named {
        let dso = match (named.dso, kernel) {
            (NameId::NONE, true) => Some(kernel::NAME.into()),
            (NameId::NONE, false) => None,
            (file, true) => Some(self.dso(file, kernel_dso)),
            (file, false) => Some(self.dso(file, dso_as_written)),
        };
        let function = self.info.names.bytes(named.function);
        let function = (!function.is_empty()).then(|| demangle::demangle(&function).into());
        Named { dso, function }
    }

    fn name_kernel(&mut self, code: &Code) -> Named {
        let (dso, module) = match code.mapping {
            None => (kernel::NAME.into(), false),
            Some(mapping) => {
                let dso = self.dso(mapping.file, kernel_dso);
                let module = &*dso != kernel::NAME;
                (dso, module)
            }
        };
        // Code that the kernel generated at run time (BPF) is in no file; its mapping has the
        // function's name.
        let made = |m: Mapping| !self.info.names.get(m.file).starts_with(['/', '[']);
        if code.mapping.is_some_and(made) {
            return Named { function: Some(dso.clone()), dso: Some(dso) };
        }
        let function = match self.options.off {
            true => None,
            false => self
                .kernel
                .get_or_init(|| Kernel::new(self.info, self.text.as_ref(), &self.options))
                .function(code.address, module)
                .map(Arc::from),
        };
        // Code that the kernel made while it ran is in no mapping, and not among its functions.
        let made = code.mapping.is_none() && function.is_none() && self.text.is_some();
        Named { dso: (!made).then_some(dso), function }
    }

    fn name_user(&mut self, code: &Code) -> Named {
        let Some(mapping) = code.mapping else { return Named::default() };
        let file = self.info.names.get(mapping.file);
        if is_anonymous(&file) {
            return self.name_compiled(code);
        }
        if self.options.off {
            return Named { dso: Some(self.dso(mapping.file, user_dso)), function: None };
        }
        let build = self.build_of(&mapping);
        let options = &self.options;
        let module = self.modules.entry((mapping.file, build)).or_insert_with(|| Module {
            dso: user_dso(&file).into(),
            found: search(&file, build, options),
            lines: OnceCell::new(),
        });
        let dso = Some(module.dso.clone());
        let function = module.function(&mapping, code.address).map(Arc::from);
        Named { dso, function }
    }

    /// The name of code that a JIT compiler generated.
    fn name_compiled(&mut self, code: &Code) -> Named {
        let dso = Some(format!("[JIT] tid {}", code.pid).into());
        if self.options.off {
            return Named { dso, function: None };
        }
        let symfs = &self.options.symfs;
        let listed = self.compiled.entry(code.pid).or_insert_with(|| {
            let path = PathBuf::from(format!("tmp/perf-{}.map", code.pid));
            Listed::perf_map(&symfs.as_deref().unwrap_or("/".as_ref()).join(path))
        });
        let function = listed.as_ref().and_then(|l| l.function(code.address)).map(Arc::from);
        Named { dso, function }
    }

    /// The file of a mapping and the virtual address in it, if it has been looked for and found.
    fn place(&self, mapping: &Mapping, address: u64) -> Option<(&Module, u64)> {
        let build = self.build_of(mapping);
        let module = self.modules.get(&(mapping.file, build))?;
        Some((module, module.address(mapping, address)?))
    }

    /// The recorded build id of a mapping's file.
    pub fn build_of(&self, mapping: &Mapping) -> Option<BuildId> {
        mapping.build_id.or_else(|| {
            let name = self.info.names.get(mapping.file);
            let text = mapping.kernel && name.starts_with("[kernel");
            let file = if text { kernel::NAME.to_owned() } else { name };
            self.info.built.iter().find(|b| b.file == file).map(|b| b.build_id)
        })
    }

    fn dso(&mut self, file: NameId, spell: fn(&str) -> String) -> Arc<str> {
        let names = &self.info.names;
        self.dsos.entry(file).or_insert_with(|| spell(&names.get(file)).into()).clone()
    }
}

impl Module {
    /// The virtual address of an address in memory.
    fn address(&self, mapping: &Mapping, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(mapping.start).wrapping_add(mapping.offset);
        let Search { elf, debug, .. } = &self.found;
        elf.as_ref().or(debug.as_ref())?.address(offset)
    }

    fn function(&self, mapping: &Mapping, address: u64) -> Option<String> {
        self.found.names()?.function(self.address(mapping, address)?)
    }

    /// The function whose call returns to a virtual address.
    fn called(&self, back: u64) -> Option<String> {
        let target = self.found.elf.as_ref()?.called(back)?;
        let names = self.found.names().filter(|names| names.begins(target))?;
        names.function(target)
    }
}

/// The first of a list, and how many more.
fn few<T: AsRef<str>>(all: &[T]) -> String {
    const MOST: usize = 4;
    let mut words: Vec<String> = all.iter().take(MOST).map(|a| a.as_ref().to_owned()).collect();
    words.extend((all.len() > MOST).then(|| format!("and {} more", all.len() - MOST)));
    words.join(", ")
}

/// The name without folders, as perf shows it.
fn user_dso(file: &str) -> String {
    match file.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name.to_owned(),
        _ => file.to_owned(),
    }
}

/// As [`user_dso`]; for mappings without a file perf names the list of JIT-compiled functions.
fn dso_as_written(file: &str) -> String {
    let name = user_dso(file);
    match name.strip_prefix("perf-").and_then(|rest| rest.strip_suffix(".map")) {
        Some(pid) if pid.parse::<u32>().is_ok() => format!("[JIT] tid {pid}"),
        _ => name,
    }
}

/// `[ext4]` of `/lib/modules/…/ext4.ko.xz`, and one name for the kernel's own code.
fn kernel_dso(file: &str) -> String {
    let name = user_dso(file);
    match name.find(".ko") {
        Some(end) => format!("[{}]", name[..end].replace('-', "_")),
        None if name.starts_with("[kernel") => kernel::NAME.to_owned(),
        None => name,
    }
}

/// Whether memory has no file: code in it was generated at run time.
fn is_anonymous(file: &str) -> bool {
    ["//anon", "/dev/zero", "/anon_hugepage", "[anon", "[heap]", "[stack"]
        .iter()
        .any(|name| file.starts_with(name))
}
