//! Files that need each other, directly or through others, can only be read together. There are
//! none but a module with its own parts: `mod.rs` (or `lib.rs`) and the files below it.

use crate::support::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module by its path in its crate: `["waits", "object"]`.
type Module = Vec<String>;

/// The code of a crate, by module.
struct Crate {
    code: BTreeMap<Module, String>,
    /// By module: what each name in it was imported from.
    imports: BTreeMap<Module, BTreeMap<String, Vec<String>>>,
}

/// Code without comments, texts and tests.
fn stripped(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or(line);
        out.extend(code.split('"').step_by(2));
        out.push('\n');
    }
    out
}

/// The paths of a `use` tree: `a::{b, c::d}` has two.
fn paths(tree: &str, before: &[String], all: &mut Vec<Vec<String>>) {
    let mut depth = 0;
    let parts = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let (path, rest) = match part.split_once('{') {
            Some((path, rest)) => (path, rest.strip_suffix('}')),
            None => (part, None),
        };
        let name = |word: &str| word.split_whitespace().next().map(str::to_owned);
        let mut whole = before.to_vec();
        whole.extend(path.split("::").filter_map(|word| name(word.trim())));
        match rest {
            Some(rest) => paths(rest, &whole, all),
            None => all.push(whole),
        }
    }
}

/// The trees of all `use` in some code.
fn uses(code: &str) -> impl Iterator<Item = &str> {
    let statements = code.split(';');
    statements.filter_map(|statement| {
        let (before, tree) = statement.rsplit_once("use ")?;
        let is_word = before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        (!is_word && !tree.contains(['(', '=', '#'])).then_some(tree)
    })
}

/// Paths that stand in the code itself: `crate::waits::Object`.
fn inline(code: &str) -> Vec<Vec<String>> {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    let within = words.filter(|word| word.starts_with("crate::") || word.starts_with("super::"));
    // Of a tree in braces this is the beginning only.
    let within = within.filter(|word| !word.ends_with("::"));
    within.map(|word| word.split("::").map(str::to_owned).collect()).collect()
}

impl Crate {
    fn read(src: &Path) -> Crate {
        let mut code = BTreeMap::new();
        read_folder(src, &mut Vec::new(), &mut code);
        let mut read = Crate { code, imports: BTreeMap::new() };
        for (module, code) in &read.code {
            let mut all = Vec::new();
            uses(code).for_each(|tree| paths(tree, &[], &mut all));
            let named = all.into_iter().filter_map(|path| {
                let whole = read.absolute(module, &path)?;
                Some((whole.last()?.clone(), whole))
            });
            read.imports.insert(module.clone(), named.collect());
        }
        read
    }

    /// A path from the root of the crate; `None` of what is not in the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let first = path.first()?;
        let ups = path.iter().take_while(|word| *word == "super").count();
        let (base, rest) = match first.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (&module[..], &path[1..]),
            "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
            _ if self.code.contains_key(&[&module[..], &path[..1]].concat()) => (&module[..], path),
            _ => return None,
        };
        Some([base, rest].concat())
    }

    /// The module that has what a path names, through at most so many imports.
    fn home(&self, path: &[String], through: usize) -> Module {
        let mut at = Module::new();
        for (i, word) in path.iter().enumerate() {
            let below = [&at[..], std::slice::from_ref(word)].concat();
            if self.code.contains_key(&below) {
                at = below;
                continue;
            }
            let from = self.imports.get(&at).and_then(|names| names.get(word));
            return match from {
                Some(from) if through > 0 && from[..] != path[..=i] => {
                    self.home(&[&from[..], &path[i + 1..]].concat(), through - 1)
                }
                _ => at,
            };
        }
        at
    }

    /// Which modules each needs, but for its own parts and those it is a part of.
    fn needs(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let mut needs = BTreeMap::new();
        for (module, code) in &self.code {
            let mut all = inline(code);
            uses(code).for_each(|tree| paths(tree, &[], &mut all));
            let homes = all.iter().filter_map(|path| {
                let home = self.home(&self.absolute(module, path)?, 6);
                (!home.starts_with(module) && !module.starts_with(&home)).then_some(home)
            });
            needs.insert(module, homes.collect());
        }
        needs
    }
}

fn read_folder(folder: &Path, module: &mut Module, code: &mut BTreeMap<Module, String>) {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            module.push(name);
            read_folder(&path, module, code);
            module.pop();
        } else if path.extension().is_some_and(|e| e == "rs") && name != "tests" {
            let part = (!["lib", "main", "mod"].contains(&&*name)).then_some(name);
            let whole = module.iter().cloned().chain(part).collect();
            code.insert(whole, stripped(&fs::read_to_string(&path).expect("source")));
        }
    }
}

/// Modules that need each other: what is left when those that need nothing of the rest are taken
/// away, again and again; and of that those that the rest needs.
fn circle(needs: &BTreeMap<&Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut left: BTreeSet<Module> = needs.keys().map(|&module| module.clone()).collect();
    loop {
        let is_in = |module: &Module| {
            let needs_some = needs[module].iter().any(|other| left.contains(other));
            needs_some && left.iter().any(|other| needs[other].contains(module))
        };
        let next: BTreeSet<Module> = left.iter().filter(|module| is_in(module)).cloned().collect();
        if next.len() == left.len() {
            return next;
        }
        left = next;
    }
}

fn crates() -> Vec<(String, Crate)> {
    let entries = fs::read_dir(root().join("crates")).expect("crates");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let all = folders.chain([root().to_owned()]).filter(|folder| folder.join("src").is_dir());
    let named = |path: std::path::PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, Crate::read(&path.join("src")))
    };
    all.map(named).collect()
}

#[test]
fn no_files_need_each_other() {
    let mut met = 0;
    for (name, read) in crates() {
        let needs = read.needs();
        met += needs.values().map(BTreeSet::len).sum::<usize>();
        let files: Vec<String> = circle(&needs).iter().map(|module| module.join("/")).collect();
        assert!(files.is_empty(), "crate {name}: these need each other: {}", files.join(", "));
    }
    assert!(met > 1000, "only {met} imports were found");
}

#[test]
fn a_circle_is_found_through_imports_that_are_handed_on() {
    let sources = [
        (vec![], "mod a; mod b; mod c; pub use b::{Thing, other::Part};"),
        (vec!["a"], "use crate::{Thing, c};\nuse std::fs;"),
        (vec!["b"], "mod other; fn f() { crate::c::made() }"),
        (vec!["b", "other"], "use super::Thing;"),
        (vec!["c"], "// use crate::b::x;\nuse crate::{a::made};"),
    ];
    let owned = |m: Vec<&str>| m.into_iter().map(str::to_owned).collect::<Module>();
    let code = sources.map(|(module, text)| (owned(module), stripped(text)));
    let mut read = Crate { code: code.into_iter().collect(), imports: BTreeMap::new() };
    let thing = vec!["b".to_owned(), "Thing".to_owned()];
    read.imports.insert(Module::new(), BTreeMap::from([("Thing".to_owned(), thing)]));
    let found: Vec<String> = circle(&read.needs()).iter().map(|m| m.join("/")).collect();
    assert_eq!(found, ["a", "b", "c"]);
    read.code.insert(owned(vec!["c"]), "fn alone() {}".to_owned());
    assert!(circle(&read.needs()).is_empty());
}
