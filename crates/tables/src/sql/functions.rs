//! The functions that a query may call.

use sqlparser::ast::{Expr, Function, ObjectNamePart};

/// The rows that a function works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One row.
    Scalar,
    /// All rows of a group or, with OVER, of a window.
    Aggregate,
    /// The rows of a window, with OVER only.
    Window,
}

/// A function: its name, its kind, and its numbers of arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// Whether polars returns 32 bits, which then overflow in calculations.
    pub(crate) narrow: bool,
}

const fn known(name: &'static str, kind: Kind, least: usize, most: usize, narrow: bool) -> Known {
    Known { name, kind, least, most, narrow }
}

use Kind::{Aggregate, Scalar, Window};

/// All of them. Each is compared with SQLite, or with figures computed by hand.
pub(crate) const FUNCTIONS: &[Known] = &[
    known("count", Aggregate, 1, 1, true),
    known("sum", Aggregate, 1, 1, false),
    known("avg", Aggregate, 1, 1, false),
    known("min", Aggregate, 1, 1, false),
    known("max", Aggregate, 1, 1, false),
    known("median", Aggregate, 1, 1, false),
    known("stddev", Aggregate, 1, 1, false),
    known("quantile_cont", Aggregate, 2, 2, false),
    known("quantile_disc", Aggregate, 2, 2, false),
    known("row_number", Window, 0, 0, true),
    known("rank", Window, 0, 0, true),
    known("dense_rank", Window, 0, 0, true),
    known("lag", Window, 1, 2, false),
    known("lead", Window, 1, 2, false),
    known("first_value", Window, 1, 1, false),
    known("abs", Scalar, 1, 1, false),
    known("round", Scalar, 1, 2, false),
    known("sqrt", Scalar, 1, 1, false),
    known("coalesce", Scalar, 1, usize::MAX, false),
    known("ifnull", Scalar, 2, 2, false),
    known("nullif", Scalar, 2, 2, false),
    known("lower", Scalar, 1, 1, false),
    known("upper", Scalar, 1, 1, false),
    known("length", Scalar, 1, 1, true),
    known("replace", Scalar, 3, 3, false),
    known("starts_with", Scalar, 2, 2, false),
];

/// The function that is called, if it is known.
pub(crate) fn of(function: &Function) -> Option<&'static Known> {
    let [ObjectNamePart::Identifier(name)] = &function.name.0[..] else { return None };
    FUNCTIONS.iter().find(|known| name.value.eq_ignore_ascii_case(known.name))
}

/// Whether an expression is the call of an aggregate, not over a window.
pub(crate) fn is_aggregate(expr: &Expr) -> bool {
    let Expr::Function(function) = expr else { return false };
    function.over.is_none() && of(function).is_some_and(|known| known.kind == Aggregate)
}
