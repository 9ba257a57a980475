//! What a query may contain. Everything else is refused, with an alternative: polars understands
//! more, but answers some of it differently from other databases, and some of it reads files.

mod exprs;
mod from;
mod pieces;

use crate::sql::names::{self, Known};
use crate::sql::parse::place;
use crate::{Error, Frames, Place};
use pieces::{has_aggregate, items, of_groups};
use sqlparser::ast::{
    CeilFloorKind, DateTimeField, Distinct, Expr, GroupByExpr, Ident, LimitClause, OrderBy,
    OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator,
    SetQuantifier, Spanned, Value,
};

/// The parser's name for floor and ceil that round to whole numbers, not to days.
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

/// The position of an expression, which determines what it may call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// After WHERE and ON, in GROUP BY, inside an aggregate: neither aggregates nor windows.
    Row,
    /// After HAVING, in the columns and the order of a query that groups: aggregates.
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

/// Refuse an item if it is present.
fn none<T: Spanned>(item: Option<&T>, message: &str) -> Checked {
    item.map_or(Ok(()), |item| refuse(start(item), message))
}

impl Check<'_> {
    fn query(&self, query: &Query) -> Checked {
        if let Some(with) = &query.with {
            if with.recursive {
                return refuse(start(query), "WITH RECURSIVE is not supported");
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
            return refuse(start(query), "FETCH is not supported; write LIMIT");
        }
        self.limit(query)?;
        match &*query.body {
            SetExpr::Select(select) => self.select(select, query.order_by.as_ref()),
            body => {
                self.set(body)?;
                if query.order_by.is_some() || query.limit_clause.is_some() {
                    return refuse(
                        start(query),
                        "ORDER BY and LIMIT of a UNION are not supported; write SELECT * FROM (... \
                         UNION ...) AS u ORDER BY ... LIMIT ...",
                    );
                }
                Ok(())
            }
        }
    }

    /// The sides of UNION and similar operators.
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
                            "{op} {set_quantifier} is not supported; write UNION, UNION ALL, \
                             EXCEPT or INTERSECT"
                        ),
                    );
                }
                self.set(left)?;
                self.set(right)
            }
            other => refuse(start(other), "only SELECT is supported here"),
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
        none(select.qualify.as_ref(), "QUALIFY is not supported; write WHERE around a subquery")?;
        if let Some(window) = select.named_window.first() {
            return refuse(
                place(window.0.span.start),
                "WINDOW is not supported; write the window after each OVER",
            );
        }
        if let Some(Distinct::On(_)) = select.distinct {
            return refuse(start(select), "DISTINCT ON is not supported; write GROUP BY");
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
            return refuse(start(select), "GROUP BY ALL is not supported; name the columns");
        };
        if !modifiers.is_empty() {
            return refuse(start(select), "ROLLUP, CUBE and TOTALS are not supported");
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

    /// A key of GROUP BY: databases differ in the meaning of a number.
    fn key(&self, key: &Expr) -> Checked {
        if matches!(key, Expr::Value(_)) {
            return refuse(start(key), "GROUP BY a number is not supported; name the column");
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
            other => return refuse(start(other), "this form of a column is not supported"),
        };
        if grouped {
            return refuse(
                start(item),
                "* is not possible with GROUP BY or an aggregate; name the columns",
            );
        }
        let plain = options.opt_ilike.is_none()
            && options.opt_exclude.is_none()
            && options.opt_except.is_none()
            && options.opt_replace.is_none()
            && options.opt_rename.is_none()
            && options.opt_alias.is_none();
        if plain {
            Ok(())
        } else {
            refuse(start(item), "* takes no options; name the columns instead")
        }
    }

    /// Every column of a grouping query must have one value per group. Returns the names it gives.
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
                return Err(Error::at(start(*expr), "GROUP BY cannot contain an aggregate"));
            }
        }
        Ok(outputs)
    }

    fn order(&self, order: &OrderBy, select: &Select, spot: Spot, distinct: bool) -> Checked {
        let OrderByKind::Expressions(by) = &order.kind else {
            return refuse(start(order), "ORDER BY ALL is not supported; name the columns");
        };
        if order.interpolate.is_some() {
            return refuse(start(order), "INTERPOLATE is not supported");
        }
        let items = items(select);
        for one in by {
            // A number means a shown column, as long as * does not shift the numbers.
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
            // Windows are computed earlier: they belong among the columns.
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
                        "ORDER BY an expression that is not a column of the answer: add it to the \
                         columns with AS, and order by that name",
                    );
                }
            }
            if one.with_fill.is_some() {
                return refuse(start(one), "WITH FILL is not supported");
            }
        }
        Ok(())
    }
}
