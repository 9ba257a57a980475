//! The names in a query: the tables it reads, and the names it may use.

use crate::sql::parse::place;
use crate::{Error, Frames};
use polars_core::prelude::DataType;
use sqlparser::ast::{
    Expr, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, TableFactor, Visit, Visitor,
};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The tables named after FROM and JOIN, except those that WITH defines.
pub(crate) fn tables(query: &Query) -> BTreeSet<String> {
    let names = Names::of(query);
    names.relations.difference(&names.defined).cloned().collect()
}

/// The identifier, if the name has one part.
pub(crate) fn simple(name: &ObjectName) -> Option<&Ident> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(ident)] => Some(ident),
        _ => None,
    }
}

/// All names that a query introduces or uses for tables.
#[derive(Default)]
struct Names {
    /// After FROM and JOIN.
    relations: BTreeSet<String>,
    /// By WITH.
    defined: BTreeSet<String>,
    /// Names of tables and columns, given by AS.
    aliases: BTreeSet<String>,
}

impl Names {
    fn of(query: &Query) -> Names {
        let mut names = Names::default();
        let _: ControlFlow<()> = query.visit(&mut names);
        names
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for cte in query.with.iter().flat_map(|w| &w.cte_tables) {
            self.defined.insert(cte.alias.name.value.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                self.aliases.insert(alias.value.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let alias = match factor {
            TableFactor::Table { name, alias, .. } => {
                self.relations.extend(simple(name).map(|n| n.value.clone()));
                alias
            }
            TableFactor::Derived { alias, .. } => alias,
            _ => &None,
        };
        self.aliases.extend(alias.iter().map(|a| a.name.value.clone()));
        ControlFlow::Continue(())
    }
}

/// The names that a query may use for columns and tables.
pub(crate) struct Known {
    columns: BTreeSet<String>,
    addresses: BTreeSet<String>,
    relations: BTreeSet<String>,
}

impl Known {
    pub(crate) fn of(query: &Query, frames: &Frames) -> Known {
        let names = Names::of(query);
        let (mut columns, mut addresses) = (names.aliases.clone(), BTreeSet::new());
        for schema in names.relations.iter().filter_map(|table| frames.schema(table)) {
            for (name, kind) in schema.iter() {
                columns.insert(name.to_string());
                if *kind == DataType::UInt64 {
                    addresses.insert(name.to_string());
                }
            }
        }
        let mut relations = names.aliases;
        relations.extend(names.defined);
        relations.extend(frames.names().map(str::to_owned));
        Known { columns, addresses, relations }
    }

    pub(crate) fn relation(&self, name: &Ident) -> Result<(), Error> {
        known("table", name, &self.relations, "holdup query --list lists the tables")
    }

    /// Whether a column of this name holds addresses.
    pub(crate) fn is_address(&self, name: &Ident) -> bool {
        self.addresses.contains(&name.value)
    }

    pub(crate) fn column(&self, name: &Ident) -> Result<(), Error> {
        known("column", name, &self.columns, "holdup query --list lists the columns")
    }
}

fn known(what: &str, name: &Ident, among: &BTreeSet<String>, way_out: &str) -> Result<(), Error> {
    if among.contains(&name.value) {
        return Ok(());
    }
    let near = near(&name.value, among.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean {near}?"),
        None => way_out.to_owned(),
    };
    let mut message = format!("no {what} {}; {hint}", name.value.escape_default());
    if what == "column" && name.quote_style == Some('"') {
        message += " (text is written in single quotes, names in double quotes)";
    }
    Err(Error::at(place(name.span.start), message))
}

/// The name most similar to `name`, if any is similar enough.
pub(crate) fn near<'a>(name: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this similarity a suggestion is only a guess.
    const ALIKE: f64 = 0.5;
    let name = name.to_lowercase();
    among
        .map(|known| (strsim::normalized_damerau_levenshtein(&name, &known.to_lowercase()), known))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
        .map(|(_, known)| known)
}

/// The columns in an expression that are outside aggregates, without subqueries.
pub(crate) fn bare_columns(expr: &Expr) -> Vec<Ident> {
    struct Bare {
        aggregates: usize,
        queries: usize,
        found: Vec<Ident>,
    }
    impl Visitor for Bare {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.aggregates += usize::from(super::functions::is_aggregate(expr));
            if self.aggregates == 0 && self.queries == 0 {
                match expr {
                    Expr::Identifier(name) => self.found.push(name.clone()),
                    Expr::CompoundIdentifier(parts) => self.found.extend(parts.last().cloned()),
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        }
        fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.aggregates -= usize::from(super::functions::is_aggregate(expr));
            ControlFlow::Continue(())
        }
    }
    let mut bare = Bare { aggregates: 0, queries: 0, found: Vec::new() };
    let _: ControlFlow<()> = expr.visit(&mut bare);
    bare.found
}
