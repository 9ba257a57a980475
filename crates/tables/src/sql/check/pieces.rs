//! What an expression is, whatever the tables contain: an aggregate, a constant, a supported cast.

use super::{Checked, refuse, start};
use crate::sql::functions;
use crate::sql::names;
use crate::sql::parse::place;
use sqlparser::ast::{
    BinaryOperator, DataType, Expr, Ident, Query, Select, SelectItem, UnaryOperator, Value,
    WindowFrameBound, WindowFrameUnits, WindowSpec,
};

/// A window from the first row to the current one.
pub(super) fn running(spec: &WindowSpec) -> bool {
    spec.window_frame.as_ref().is_some_and(|frame| {
        frame.units == WindowFrameUnits::Rows
            && frame.start_bound == WindowFrameBound::Preceding(None)
            && matches!(frame.end_bound, None | Some(WindowFrameBound::CurrentRow))
    })
}

/// The columns that are not `*`, with the names that AS gives.
pub(super) fn items(select: &Select) -> Vec<(&Expr, Option<&Ident>)> {
    fn one(item: &SelectItem) -> Option<(&Expr, Option<&Ident>)> {
        match item {
            SelectItem::UnnamedExpr(expr) => Some((expr, None)),
            SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(alias))),
            _ => None,
        }
    }
    select.projection.iter().filter_map(one).collect()
}

/// Outside aggregates only the keys of the grouping, or names that the query itself defines.
pub(super) fn of_groups(expr: &Expr, keys: &[Expr], names: &[String]) -> Checked {
    if keys.contains(expr) {
        return Ok(());
    }
    let key = |column: &Ident| {
        keys.iter().any(|key| match key {
            Expr::Identifier(name) => name.value == column.value,
            Expr::CompoundIdentifier(parts) => {
                parts.last().is_some_and(|name| name.value == column.value)
            }
            _ => false,
        })
    };
    match names::bare_columns(expr).iter().find(|c| !key(c) && !names.contains(&c.value)) {
        None => Ok(()),
        Some(column) => refuse(
            place(column.span.start),
            format!("{0} has many values in a group: add it to GROUP BY, or take max({0})", column),
        ),
    }
}

pub(super) fn has_aggregate(expr: &Expr) -> bool {
    use sqlparser::ast::{Visit, Visitor};
    use std::ops::ControlFlow;
    /// Does not look into subqueries, which group for themselves.
    struct Has(usize);
    impl Visitor for Has {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.0 -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match self.0 == 0 && functions::is_aggregate(expr) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    expr.visit(&mut Has(0)).is_break()
}

pub(super) fn constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(v) => !matches!(v.value, Value::Null),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => constant(expr),
        Expr::Nested(expr) => constant(expr),
        _ => false,
    }
}

pub(super) fn calculates(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Plus | Minus | Multiply | Divide | DuckIntegerDivide)
}

pub(super) fn operator(op: &BinaryOperator, whole: &Expr) -> Checked {
    use BinaryOperator::*;
    match op {
        Plus | Minus | Multiply | Divide | DuckIntegerDivide | Gt | Lt | GtEq | LtEq | Eq
        | NotEq | And | Or | StringConcat => Ok(()),
        Modulo => refuse(
            start(whole),
            "a % b differs between databases where a is negative; \
            write a - (a // b) * b",
        ),
        other => refuse(start(whole), format!("the operator {other} is not supported")),
    }
}

pub(super) fn castable(to: &DataType, whole: &Expr) -> Checked {
    match to {
        DataType::BigInt(None)
        | DataType::Integer(None)
        | DataType::Int(None)
        | DataType::Double(_)
        | DataType::DoublePrecision
        | DataType::Real
        | DataType::Text
        | DataType::Varchar(None) => Ok(()),
        other => refuse(
            start(whole),
            format!("CAST to {other} is not supported; the types are BIGINT, DOUBLE and TEXT"),
        ),
    }
}

pub(super) fn count(known: &functions::Known) -> String {
    match (known.least, known.most) {
        (0, 0) => "no argument".to_owned(),
        (1, 1) => "one argument".to_owned(),
        (least, usize::MAX) => format!("{least} or more arguments"),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} or {most} arguments"),
    }
}
