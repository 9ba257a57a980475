//! Checks expressions: columns, operators, functions and windows.

use super::pieces::{calculates, castable, constant, count, operator, running};
use super::{Check, Checked, Spot, WHOLE, refuse, start};
use crate::Place;
use crate::sql::functions::{self, Kind};
use crate::sql::names;
use crate::sql::parse::place;
use sqlparser::ast::{
    CastKind, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    OrderByExpr, UnaryOperator, Value, WindowType,
};

impl Check<'_> {
    pub(super) fn exprs<'e>(
        &self,
        list: impl IntoIterator<Item = &'e Expr>,
        spot: Spot,
    ) -> Checked {
        list.into_iter().try_for_each(|e| self.expr(e, spot))
    }

    pub(super) fn expr(&self, expr: &Expr, spot: Spot) -> Checked {
        match expr {
            Expr::Identifier(name) => self.known.column(name),
            Expr::CompoundIdentifier(parts) => match &parts[..] {
                [table, column] => {
                    self.known.relation(table)?;
                    self.known.column(column)
                }
                _ => refuse(start(expr), "write table.column"),
            },
            Expr::Value(value) => match &value.value {
                Value::Number(..)
                | Value::SingleQuotedString(_)
                | Value::Boolean(_)
                | Value::Null => Ok(()),
                other => refuse(
                    place(value.span.start),
                    format!("{other}: write a number, or text in single quotes"),
                ),
            },
            Expr::Nested(e)
            | Expr::IsNull(e)
            | Expr::IsNotNull(e)
            | Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Not, expr: e } => {
                self.expr(e, spot)
            }
            Expr::Floor { expr: e, field } | Expr::Ceil { expr: e, field } => match *field == WHOLE
            {
                true => self.expr(e, spot),
                false => refuse(start(expr), "floor and ceil take one argument"),
            },
            Expr::BinaryOp { left, op, right } => {
                operator(op, expr)?;
                if calculates(op) {
                    self.measures(left)?;
                    self.measures(right)?;
                }
                self.exprs([&**left, &**right], spot)
            }
            Expr::Between { expr, low, high, .. } => self.exprs([&**expr, &**low, &**high], spot),
            Expr::InList { expr: e, list, .. } => {
                if !list.iter().all(constant) {
                    return refuse(start(expr), "IN (...) takes constants");
                }
                self.expr(e, spot)?;
                self.exprs(list, spot)
            }
            Expr::InSubquery { expr, subquery, .. } => {
                self.expr(expr, spot)?;
                self.query(subquery)
            }
            Expr::Like { any: false, expr: e, pattern, escape_char: None, .. }
            | Expr::ILike { any: false, expr: e, pattern, escape_char: None, .. } => {
                if !constant(pattern) {
                    return refuse(start(&**pattern), "LIKE takes a pattern in single quotes");
                }
                self.expr(e, spot)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                self.exprs(operand.as_deref(), spot)?;
                for when in conditions {
                    self.exprs([&when.condition, &when.result], spot)?;
                }
                self.exprs(else_result.as_deref(), spot)
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon, expr: e, data_type, ..
            } => {
                castable(data_type, expr)?;
                self.expr(e, spot)
            }
            Expr::Substring { expr: e, substring_from, substring_for, .. } => self.exprs(
                [Some(&**e), substring_from.as_deref(), substring_for.as_deref()]
                    .into_iter()
                    .flatten(),
                spot,
            ),
            Expr::Subquery(query) => refuse(
                start(&**query),
                "a subquery as a value is not supported; write CROSS JOIN (SELECT max(duration_ns) \
                 AS longest FROM runs) AS m",
            ),
            Expr::Function(function) => self.function(function, spot),
            other => refuse(start(other), format!("{other}: this is not supported")),
        }
    }

    pub(super) fn function(&self, function: &Function, spot: Spot) -> Checked {
        let at = start(&function.name);
        let Some(known) = functions::of(function) else {
            let name = function.name.to_string();
            let all = functions::FUNCTIONS.iter().map(|f| f.name);
            let hint = names::near(&name, all.clone()).map_or_else(
                || format!("the functions are {}", all.collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean {near}?"),
            );
            return refuse(at, format!("no function {name}; {hint}"));
        };
        let name = known.name;
        let plain = function.filter.is_none()
            && function.null_treatment.is_none()
            && !function.uses_odbc_syntax
            && matches!(function.parameters, FunctionArguments::None);
        if !plain {
            return refuse(
                at,
                format!(
                    "{name} with FILTER or IGNORE NULLS is not supported; write CASE WHEN ... THEN \
                     ... END inside of {name}"
                ),
            );
        }
        let FunctionArguments::List(list) = &function.args else {
            return refuse(at, format!("{name} takes its arguments in parentheses"));
        };
        let mut arguments = Vec::new();
        for argument in &list.args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(e)) => arguments.push(e),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) if name == "count" => {}
                other => return refuse(at, format!("{name}({other}) is not supported")),
            }
        }
        if !(known.least..=known.most).contains(&list.args.len()) || !list.clauses.is_empty() {
            return refuse(at, format!("{name} takes {}", count(known)));
        }
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            && (name != "count" || function.over.is_some() || arguments.is_empty())
        {
            return refuse(
                at,
                "DISTINCT inside of a function is supported only in count(DISTINCT column)",
            );
        }
        let fixed = known.name.starts_with("quantile") || matches!(name, "lag" | "lead" | "round");
        if let Some(second) = arguments.get(1).filter(|e| fixed && !constant(e)) {
            return refuse(
                start(*second),
                format!("the second argument of {name} must be a number"),
            );
        }
        if let (Kind::Aggregate | Kind::Window, Some(first)) = (known.kind, arguments.first()) {
            // For a constant polars sums one value, however many rows there are.
            if names::bare_columns(first).is_empty() {
                return refuse(at, format!("{name} of a constant: name a column; count(*) counts"));
            }
            if matches!(name, "sum" | "avg" | "median" | "stddev") {
                self.measures(first)?;
            }
        }
        match (known.kind, &function.over, spot) {
            (Kind::Scalar, None, _) => self.exprs(arguments, spot),
            (Kind::Scalar, Some(_), _) => refuse(at, format!("{name} cannot have a window")),
            (Kind::Window, None, _) => refuse(at, format!("{name} needs OVER (ORDER BY ...)")),
            (Kind::Aggregate, None, Spot::Group) => self.exprs(arguments, Spot::Row),
            (Kind::Aggregate, None, _) => refuse(
                at,
                format!(
                    "{name} is possible only among the columns or in HAVING; to compare with it, \
                     write a subquery"
                ),
            ),
            (_, Some(over), Spot::Window) => {
                self.exprs(arguments, Spot::Row)?;
                self.window(name, known.kind, over, at)
            }
            (_, Some(_), _) => refuse(
                at,
                "windows are possible only among the columns, and not together with aggregates or \
                 GROUP BY; group in a subquery: SELECT ... OVER (...) FROM (SELECT ... GROUP BY \
                 ...) AS g",
            ),
        }
    }

    /// Addresses are names: there is nothing to calculate, and their type is unsigned.
    pub(super) fn measures(&self, expr: &Expr) -> Checked {
        match expr {
            Expr::Identifier(name) if self.known.is_address(name) => {
                refuse(place(name.span.start), format!("{name} is an address, not a measure"))
            }
            Expr::CompoundIdentifier(parts) => match parts.last() {
                Some(name) => self.measures(&Expr::Identifier(name.clone())),
                None => Ok(()),
            },
            Expr::Nested(inner) => self.measures(inner),
            _ => Ok(()),
        }
    }

    pub(super) fn window(
        &self,
        name: &str,
        kind: Kind,
        over: &WindowType,
        at: Option<Place>,
    ) -> Checked {
        let WindowType::WindowSpec(spec) = over else {
            return refuse(at, "write the window in parentheses after OVER");
        };
        if spec.window_name.is_some() {
            return refuse(at, "write the window in parentheses after OVER");
        }
        self.exprs(&spec.partition_by, Spot::Row)?;
        spec.order_by.iter().try_for_each(|by| self.window_order(by))?;
        let ordered = !spec.order_by.is_empty();
        if kind == Kind::Window {
            if !ordered {
                return refuse(at, format!("{name} needs ORDER BY in its window"));
            }
            if spec.window_frame.is_some() {
                return refuse(at, format!("{name} takes no frame (ROWS, RANGE)"));
            }
            return Ok(());
        }
        match (ordered, matches!(name, "sum" | "min" | "max" | "count")) {
            (false, _) if spec.window_frame.is_none() => Ok(()),
            (true, true) if running(spec) => Ok(()),
            (true, true) => refuse(
                at,
                format!(
                    "{name} with ORDER BY in its window: write ROWS BETWEEN UNBOUNDED PRECEDING \
                     AND CURRENT ROW there; no other frame is supported"
                ),
            ),
            _ => refuse(at, format!("{name} takes only PARTITION BY in its window")),
        }
    }

    /// One column only: databases differ in how a window with several orders ties.
    pub(super) fn window_order(&self, by: &OrderByExpr) -> Checked {
        if by.options.nulls_first.is_some() {
            return refuse(start(by), "NULLS FIRST and LAST are not supported in a window");
        }
        self.expr(&by.expr, Spot::Row)
    }
}
