//! What a query may say. Everything that is not let through here is refused, with the way out:
//! polars understands more, but some of that it answers otherwise than other databases do, and
//! some of it reads files.

use crate::sql::functions::{self, Kind};
use crate::sql::names::{self, Known};
use crate::sql::parse::place;
use crate::{Error, Frames, Place};
use sqlparser::ast::{
    BinaryOperator, CastKind, CeilFloorKind, DataType, DateTimeField, Distinct, DuplicateTreatment,
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Join,
    JoinConstraint, JoinOperator, LimitClause, OrderBy, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier, Spanned,
    TableAlias, TableFactor, UnaryOperator, Value, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};

/// How the parser says that floor and ceil round to whole numbers, not to days.
const WHOLE: CeilFloorKind = CeilFloorKind::DateTimeField(DateTimeField::NoDateTime);

type Checked = Result<(), Error>;

/// Whether `query` may be run over `frames`.
pub(crate) fn query(query: &Query, frames: &Frames) -> Checked {
    Check { known: Known::of(query, frames), frames }.query(query)
}

struct Check<'a> {
    known: Known,
    frames: &'a Frames,
}

/// Where an expression stands, which decides what it may call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// Behind WHERE and ON, in GROUP BY, inside an aggregate: neither aggregates nor windows.
    Row,
    /// Behind HAVING, in the columns and the order of a query that groups: aggregates.
    Group,
    /// In the columns of a query that does not group: windows.
    Window,
}

fn refuse(at: Option<Place>, message: impl Into<String>) -> Checked {
    Err(Error::at(at, message))
}

fn start(of: &impl Spanned) -> Option<Place> {
    place(of.span().start)
}

/// Refuse what is there.
fn none<T: Spanned>(item: Option<&T>, message: &str) -> Checked {
    item.map_or(Ok(()), |item| refuse(start(item), message))
}

impl Check<'_> {
    fn query(&self, query: &Query) -> Checked {
        if let Some(with) = &query.with {
            if with.recursive {
                return refuse(start(query), "WITH RECURSIVE is not answered");
            }
            for cte in &with.cte_tables {
                let name = &cte.alias.name;
                if self.frames.schema(&name.value).is_some() {
                    let message = format!("WITH {name}: there is a table of this name");
                    return refuse(place(name.span.start), message);
                }
                self.alias(Some(&cte.alias))?;
                self.query(&cte.query)?;
            }
        }
        if query.fetch.is_some() {
            return refuse(start(query), "FETCH is not answered; write LIMIT");
        }
        self.limit(query)?;
        match &*query.body {
            SetExpr::Select(select) => self.select(select, query.order_by.as_ref()),
            body => {
                self.set(body)?;
                if query.order_by.is_some() || query.limit_clause.is_some() {
                    return refuse(
                        start(query),
                        "ORDER BY and LIMIT of a UNION: write SELECT * FROM (... UNION ...) AS u \
                         ORDER BY ... LIMIT ...",
                    );
                }
                Ok(())
            }
        }
    }

    /// The sides of UNION and its kin.
    fn set(&self, body: &SetExpr) -> Checked {
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let plain = match op {
                    SetOperator::Union => matches!(
                        set_quantifier,
                        SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None
                    ),
                    SetOperator::Except | SetOperator::Intersect => {
                        matches!(set_quantifier, SetQuantifier::Distinct | SetQuantifier::None)
                    }
                    SetOperator::Minus => false,
                };
                if !plain {
                    return refuse(
                        start(body),
                        format!(
                            "{op} {set_quantifier} is not answered; there are UNION, UNION \
                                 ALL, EXCEPT and INTERSECT"
                        ),
                    );
                }
                self.set(left)?;
                self.set(right)
            }
            other => refuse(start(other), "only SELECT is answered here"),
        }
    }

    fn limit(&self, query: &Query) -> Checked {
        let number = |e: &Expr| match e {
            Expr::Value(v) => matches!(&v.value, Value::Number(n, _) if n.parse::<u32>().is_ok()),
            _ => false,
        };
        match &query.limit_clause {
            None => Ok(()),
            Some(LimitClause::LimitOffset { limit, offset, limit_by })
                if limit_by.is_empty()
                    && limit.as_ref().is_none_or(number)
                    && offset.as_ref().is_none_or(|o| number(&o.value)) =>
            {
                Ok(())
            }
            Some(clause) => refuse(start(clause), "LIMIT and OFFSET take whole numbers"),
        }
    }

    fn select(&self, select: &Select, order: Option<&OrderBy>) -> Checked {
        none(select.qualify.as_ref(), "QUALIFY is not answered; write WHERE around a subquery")?;
        if let Some(window) = select.named_window.first() {
            return refuse(
                place(window.0.span.start),
                "WINDOW is not answered; write the window after each OVER",
            );
        }
        if let Some(Distinct::On(_)) = select.distinct {
            return refuse(start(select), "DISTINCT ON is not answered; write GROUP BY");
        }
        if select.from.is_empty() {
            return refuse(start(select), "SELECT needs a table: write FROM");
        }
        if let [_, other, ..] = &select.from[..] {
            return refuse(start(&other.relation), "write JOIN ... ON instead of the comma");
        }
        for table in &select.from {
            self.table(&table.relation)?;
            table.joins.iter().try_for_each(|join| self.join(join))?;
        }
        if let Some(condition) = &select.selection {
            self.expr(condition, Spot::Row)?;
        }
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            return refuse(start(select), "GROUP BY ALL is not answered; name the columns");
        };
        if !modifiers.is_empty() {
            return refuse(start(select), "ROLLUP, CUBE and TOTALS are not answered");
        }
        keys.iter().try_for_each(|key| self.key(key))?;
        let items = items(select);
        let grouped = !keys.is_empty() || items.iter().any(|(e, _)| has_aggregate(e));
        let spot = if grouped { Spot::Group } else { Spot::Window };
        for item in &select.projection {
            self.item(item, spot, grouped)?;
        }
        if let Some(having) = &select.having {
            if keys.is_empty() {
                return refuse(start(having), "HAVING needs GROUP BY");
            }
            self.expr(having, Spot::Group)?;
        }
        if grouped {
            let outputs = self.groups(keys, &items)?;
            if let Some(having) = &select.having {
                of_groups(having, keys, &outputs)?;
            }
        }
        let distinct = matches!(select.distinct, Some(Distinct::Distinct));
        order.map_or(Ok(()), |order| self.order(order, select, spot, distinct))
    }

    /// A key of GROUP BY: by number it would be another one in each database.
    fn key(&self, key: &Expr) -> Checked {
        if matches!(key, Expr::Value(_)) {
            return refuse(start(key), "GROUP BY a number is not answered; name the column");
        }
        self.expr(key, Spot::Row)
    }

    fn item(&self, item: &SelectItem, spot: Spot, grouped: bool) -> Checked {
        let options = match item {
            SelectItem::UnnamedExpr(expr) => return self.expr(expr, spot),
            SelectItem::ExprWithAlias { expr, .. } => return self.expr(expr, spot),
            SelectItem::Wildcard(options) => options,
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                options,
            ) => {
                let Some(name) = names::simple(name) else {
                    return refuse(start(item), "write TABLE.*");
                };
                self.known.relation(name)?;
                options
            }
            other => return refuse(start(other), "this form of a column is not answered"),
        };
        if grouped {
            return refuse(start(item), "* beside GROUP BY or an aggregate: name the columns");
        }
        let plain = options.opt_ilike.is_none()
            && options.opt_exclude.is_none()
            && options.opt_except.is_none()
            && options.opt_replace.is_none()
            && options.opt_rename.is_none()
            && options.opt_alias.is_none();
        if plain { Ok(()) } else { refuse(start(item), "* stands alone; name the columns instead") }
    }

    /// What a grouping query shows must be one value a group. Returns the names it gives.
    fn groups(
        &self,
        keys: &[Expr],
        items: &[(&Expr, Option<&Ident>)],
    ) -> Result<Vec<String>, Error> {
        let mut outputs = Vec::new();
        for (expr, alias) in items {
            outputs.extend(alias.map(|a| a.value.clone()));
            // GROUP BY may name a column by its alias.
            let by_alias = alias.is_some_and(|alias| {
                keys.iter().any(|k| matches!(k, Expr::Identifier(i) if i.value == alias.value))
            });
            if !by_alias {
                of_groups(expr, keys, &[])?;
            } else if has_aggregate(expr) {
                return Err(Error::at(start(*expr), "GROUP BY names an aggregate"));
            }
        }
        Ok(outputs)
    }

    fn order(&self, order: &OrderBy, select: &Select, spot: Spot, distinct: bool) -> Checked {
        let OrderByKind::Expressions(by) = &order.kind else {
            return refuse(start(order), "ORDER BY ALL is not answered; name the columns");
        };
        if order.interpolate.is_some() {
            return refuse(start(order), "INTERPOLATE is not answered");
        }
        let items = items(select);
        for one in by {
            // By number is by what is shown, as long as * does not shift the numbers.
            if let Expr::Value(number) = &one.expr {
                let Value::Number(n, _) = &number.value else {
                    return refuse(start(one), "ORDER BY a constant orders nothing");
                };
                let there = n.parse::<usize>().is_ok_and(|n| (1..=items.len()).contains(&n));
                if items.len() != select.projection.len() || !there {
                    return refuse(start(one), format!("ORDER BY {n}: name the column"));
                }
                continue;
            }
            // Windows are computed before: their place is among the columns.
            self.expr(&one.expr, if spot == Spot::Window { Spot::Row } else { spot })?;
            let shown = |e: &Expr| {
                items.iter().any(|(item, alias)| {
                    *item == e
                        || matches!(e, Expr::Identifier(i)
                        if alias.is_some_and(|alias| alias.value == i.value))
                })
            };
            if (distinct || spot == Spot::Group) && !shown(&one.expr) {
                let wildcard = items.len() != select.projection.len();
                if !(wildcard && matches!(one.expr, Expr::Identifier(_))) {
                    return refuse(
                        start(&one.expr),
                        "ORDER BY what is not shown: add it to the columns, with AS, and order by \
                         that name",
                    );
                }
            }
            if one.with_fill.is_some() {
                return refuse(start(one), "WITH FILL is not answered");
            }
        }
        Ok(())
    }

    fn alias(&self, alias: Option<&TableAlias>) -> Checked {
        match alias {
            Some(alias) if !alias.columns.is_empty() || alias.at.is_some() => refuse(
                place(alias.name.span.start),
                "name columns with AS inside the subquery, not behind its name",
            ),
            _ => Ok(()),
        }
    }

    fn table(&self, factor: &TableFactor) -> Checked {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let Some(table) = names::simple(name) else {
                    return refuse(start(name), "tables have names of one part");
                };
                self.known.relation(table)?;
                self.alias(alias.as_ref())
            }
            TableFactor::Table { name, .. } => refuse(
                start(name),
                format!(
                    "{name}(...) is not answered: a query reads the tables of the trace and \
                         nothing else"
                ),
            ),
            TableFactor::Derived { lateral: false, subquery, alias, sample: None } => {
                if alias.is_none() {
                    return refuse(start(&**subquery), "name the subquery: (SELECT ...) AS s");
                }
                self.alias(alias.as_ref())?;
                self.query(subquery)
            }
            other => refuse(start(other), "FROM takes a table or a subquery"),
        }
    }

    fn join(&self, join: &Join) -> Checked {
        self.table(&join.relation)?;
        let at = start(&join.relation);
        match &join.join_operator {
            JoinOperator::Join(on) | JoinOperator::Inner(on) => self.joined(on, at),
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => self.joined(on, at),
            JoinOperator::CrossJoin(JoinConstraint::None) => Ok(()),
            _ => refuse(at, "of the joins there are JOIN, LEFT JOIN and CROSS JOIN"),
        }
    }

    /// Joins compare columns for equality, joined by AND.
    fn joined(&self, on: &JoinConstraint, at: Option<Place>) -> Checked {
        fn equal(on: &Expr) -> bool {
            match on {
                Expr::Nested(inner) => equal(inner),
                Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                    equal(left) && equal(right)
                }
                Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                    [left, right].iter().all(|e| matches!(***e, Expr::CompoundIdentifier(_)))
                }
                _ => false,
            }
        }
        match on {
            JoinConstraint::On(on) => {
                if !equal(on) {
                    return refuse(
                        start(on),
                        "ON takes a.column = b.column, joined by AND; other conditions go behind \
                         WHERE",
                    );
                }
                self.expr(on, Spot::Row)
            }
            JoinConstraint::Using(columns) => {
                columns.iter().filter_map(names::simple).try_for_each(|c| self.known.column(c))
            }
            JoinConstraint::Natural | JoinConstraint::None => {
                refuse(at, "say what is joined: ON a.column = b.column, or USING (column)")
            }
        }
    }

    fn exprs<'e>(&self, list: impl IntoIterator<Item = &'e Expr>, spot: Spot) -> Checked {
        list.into_iter().try_for_each(|e| self.expr(e, spot))
    }

    fn expr(&self, expr: &Expr, spot: Spot) -> Checked {
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
                    format!(
                        "{other}: write a number, or \
                    words in single quotes"
                    ),
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
                "a subquery that stands for a value is not answered; write CROSS JOIN (SELECT \
                 max(duration_ns) AS longest FROM runs) AS m",
            ),
            Expr::Function(function) => self.function(function, spot),
            other => refuse(start(other), format!("{other}: this is not answered")),
        }
    }

    fn function(&self, function: &Function, spot: Spot) -> Checked {
        let at = start(&function.name);
        let Some(known) = functions::of(function) else {
            let name = function.name.to_string();
            let all = functions::FUNCTIONS.iter().map(|f| f.name);
            let hint = names::near(&name, all.clone()).map_or_else(
                || format!("there are {}", all.collect::<Vec<_>>().join(", ")),
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
                    "{name} with FILTER or IGNORE NULLS is not answered; write \
                CASE WHEN ... THEN ... END inside of {name}"
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
                other => return refuse(at, format!("{name}({other}) is not answered")),
            }
        }
        if !(known.least..=known.most).contains(&list.args.len()) || !list.clauses.is_empty() {
            return refuse(at, format!("{name} takes {}", count(known)));
        }
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct)
            && (name != "count" || function.over.is_some() || arguments.is_empty())
        {
            return refuse(at, "DISTINCT inside of a function: only count(DISTINCT column)");
        }
        if known.name.starts_with("quantile") || matches!(name, "lag" | "lead" | "round") {
            if let Some(second) = arguments.get(1).filter(|e| !constant(e)) {
                return refuse(
                    start(*second),
                    format!("the second argument of {name} is a number"),
                );
            }
        }
        if let (Kind::Aggregate | Kind::Window, Some(first)) = (known.kind, arguments.first()) {
            // Of a constant polars sums one value, however many rows there are.
            if names::bare_columns(first).is_empty() {
                return refuse(at, format!("{name} of a constant: name a column; count(*) counts"));
            }
            if matches!(name, "sum" | "avg" | "median" | "stddev") {
                self.measures(first)?;
            }
        }
        match (known.kind, &function.over, spot) {
            (Kind::Scalar, None, _) => self.exprs(arguments, spot),
            (Kind::Scalar, Some(_), _) => refuse(at, format!("{name} has no window")),
            (Kind::Window, None, _) => refuse(at, format!("{name} needs OVER (ORDER BY ...)")),
            (Kind::Aggregate, None, Spot::Group) => self.exprs(arguments, Spot::Row),
            (Kind::Aggregate, None, _) => refuse(
                at,
                format!(
                    "{name} stands among the columns or behind HAVING; to compare with it \
                         write a subquery"
                ),
            ),
            (_, Some(over), Spot::Window) => {
                self.exprs(arguments, Spot::Row)?;
                self.window(name, known.kind, over, at)
            }
            (_, Some(_), _) => refuse(
                at,
                "windows stand among the columns, and not beside aggregates or GROUP BY; group in \
                 a subquery: SELECT ... OVER (...) FROM (SELECT ... GROUP BY ...) AS g",
            ),
        }
    }

    /// Addresses name something: there is nothing to calculate, and their type has no sign.
    fn measures(&self, expr: &Expr) -> Checked {
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

    fn window(&self, name: &str, kind: Kind, over: &WindowType, at: Option<Place>) -> Checked {
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
                    "{name} with ORDER BY in its window: write ROWS BETWEEN UNBOUNDED \
                         PRECEDING AND CURRENT ROW there; no other frame is answered"
                ),
            ),
            _ => refuse(at, format!("{name} takes PARTITION BY alone in its window")),
        }
    }

    /// Of one column: how a window with several orders ties is not the same everywhere.
    fn window_order(&self, by: &OrderByExpr) -> Checked {
        if by.options.nulls_first.is_some() {
            return refuse(start(by), "NULLS FIRST and LAST are not answered in a window");
        }
        self.expr(&by.expr, Spot::Row)
    }
}

/// From the first row to this one.
fn running(spec: &WindowSpec) -> bool {
    spec.window_frame.as_ref().is_some_and(|frame| {
        frame.units == WindowFrameUnits::Rows
            && frame.start_bound == WindowFrameBound::Preceding(None)
            && matches!(frame.end_bound, None | Some(WindowFrameBound::CurrentRow))
    })
}

/// The columns that are not `*`, with the names that AS gives.
fn items(select: &Select) -> Vec<(&Expr, Option<&Ident>)> {
    fn one(item: &SelectItem) -> Option<(&Expr, Option<&Ident>)> {
        match item {
            SelectItem::UnnamedExpr(expr) => Some((expr, None)),
            SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(alias))),
            _ => None,
        }
    }
    select.projection.iter().filter_map(one).collect()
}

/// Outside of aggregates only what is grouped by, or what the query itself names.
fn of_groups(expr: &Expr, keys: &[Expr], names: &[String]) -> Checked {
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

fn has_aggregate(expr: &Expr) -> bool {
    use sqlparser::ast::{Visit, Visitor};
    use std::ops::ControlFlow;
    /// Not in subqueries, which group for themselves.
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

fn constant(expr: &Expr) -> bool {
    match expr {
        Expr::Value(v) => !matches!(v.value, Value::Null),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => constant(expr),
        Expr::Nested(expr) => constant(expr),
        _ => false,
    }
}

fn calculates(op: &BinaryOperator) -> bool {
    use BinaryOperator::*;
    matches!(op, Plus | Minus | Multiply | Divide | DuckIntegerDivide)
}

fn operator(op: &BinaryOperator, whole: &Expr) -> Checked {
    use BinaryOperator::*;
    match op {
        Plus | Minus | Multiply | Divide | DuckIntegerDivide | Gt | Lt | GtEq | LtEq | Eq
        | NotEq | And | Or | StringConcat => Ok(()),
        Modulo => refuse(
            start(whole),
            "a % b differs between databases where a is negative; \
            write a - (a // b) * b",
        ),
        other => refuse(start(whole), format!("the operator {other} is not answered")),
    }
}

fn castable(to: &DataType, whole: &Expr) -> Checked {
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
            format!(
                "CAST to {other}: there are BIGINT, DOUBLE and \
            TEXT"
            ),
        ),
    }
}

fn count(known: &functions::Known) -> String {
    match (known.least, known.most) {
        (0, 0) => "no argument".to_owned(),
        (1, 1) => "one argument".to_owned(),
        (least, usize::MAX) => format!("{least} or more arguments"),
        (least, most) if least == most => format!("{least} arguments"),
        (least, most) => format!("{least} or {most} arguments"),
    }
}
