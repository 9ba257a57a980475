//! Functions of chains: the code at each address is looked up once.

use crate::chains::Frame;
use crate::collect::Profile;
use crate::memory::Origin;
use holdup_symbols::{Source, Symbols};
use holdup_trace::{BuildId, Mapping, Pid};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// A function, by its number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct FunctionId(pub(crate) u32);

/// The identity of a function.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Function {
    /// Its file of code; `None` if no mapping is known.
    pub(crate) dso: Option<Arc<str>>,
    /// Its name; `None` if the file or its symbols are not available.
    pub(crate) name: Option<Arc<str>>,
    /// Whether its code was inlined into another function.
    pub(crate) inlined: bool,
    pub(crate) kernel: bool,
}

impl Function {
    /// Its name; without one, the file in brackets or `[unknown]`.
    pub(crate) fn label(&self) -> String {
        label(&self.name, &self.dso)
    }
}

/// A function's name; without one, the file in brackets or `[unknown]`.
pub(crate) fn label(function: &Option<Arc<str>>, dso: &Option<Arc<str>>) -> String {
    match (function, dso) {
        (Some(name), _) => name.to_string(),
        (None, Some(dso)) => format!("[{}]", dso.trim_matches(['[', ']'])),
        (None, None) => "[unknown]".to_owned(),
    }
}

/// The function of a frame, and the location in its source.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Site {
    pub(crate) function: FunctionId,
    pub(crate) source: Option<Source>,
}

/// The functions of a profile.
pub(crate) struct Functions<'a, 'i> {
    profile: &'a Profile,
    symbols: &'a mut Symbols<'i>,
    pub(crate) all: Vec<Function>,
    ids: FxHashMap<Function, FunctionId>,
    sites: FxHashMap<(Pid, Frame), Rc<[Site]>>,
    owners: Owners,
}

/// Tells which names depend on the process that runs the code.
pub(crate) struct Owners {
    /// By number of a frame's origin: whether names there depend on the process.
    of_process: Vec<bool>,
}

impl Owners {
    pub(crate) fn new(profile: &Profile, symbols: &Symbols<'_>) -> Owners {
        let mappings = profile.code.origins().iter().map(Origin::mapping);
        let depends = |m: Option<&Mapping>| m.is_some_and(|m| symbols.depends_on_process(m));
        Owners { of_process: mappings.map(depends).collect() }
    }

    /// The process on which a frame's names depend.
    pub(crate) fn owner(&self, pid: Pid, frame: &Frame) -> Pid {
        match self.of_process.get(frame.origin as usize) {
            Some(true) => pid,
            _ => Pid::UNKNOWN,
        }
    }
}

impl<'a, 'i> Functions<'a, 'i> {
    pub(crate) fn new(profile: &'a Profile, symbols: &'a mut Symbols<'i>) -> Functions<'a, 'i> {
        let owners = Owners::new(profile, symbols);
        Functions {
            profile,
            symbols,
            all: Vec::new(),
            ids: FxHashMap::default(),
            sites: FxHashMap::default(),
            owners,
        }
    }

    /// The process on which a frame's names depend.
    pub(crate) fn owner(&self, pid: Pid, frame: &Frame) -> Pid {
        self.owners.owner(pid, frame)
    }

    /// The functions that have a frame's address: inlined functions first, the function itself
    /// last.
    pub(crate) fn sites(&mut self, pid: Pid, frame: &Frame) -> Rc<[Site]> {
        let owner = self.owner(pid, frame);
        if let Some(sites) = self.sites.get(&(owner, *frame)) {
            return sites.clone();
        }
        let (named, functions) =
            self.symbols.functions(&self.profile.code.code(pid, frame), frame.returns);
        let site = |f: holdup_symbols::Function| {
            let (dso, kernel) = (named.dso.clone(), frame.kernel);
            let function = Function { dso, name: f.function, inlined: f.inlined, kernel };
            Site { function: self.id(function), source: f.source }
        };
        let sites: Rc<[Site]> = functions.into_iter().map(site).collect();
        self.sites.insert((owner, *frame), sites.clone());
        sites
    }

    /// The build id of a mapping's file.
    pub(crate) fn build_of(&self, mapping: &Mapping) -> Option<BuildId> {
        self.symbols.build_of(mapping)
    }

    fn id(&mut self, function: Function) -> FunctionId {
        let next = FunctionId(self.all.len() as u32);
        *self.ids.entry(function).or_insert_with_key(|function| {
            self.all.push(function.clone());
            next
        })
    }

    /// The placeholder for the function of a sample without any address.
    pub(crate) fn unknown(&mut self) -> FunctionId {
        self.id(Function { dso: None, name: None, inlined: false, kernel: false })
    }

    pub(crate) fn get(&self, id: FunctionId) -> &Function {
        &self.all[id.0 as usize]
    }
}
