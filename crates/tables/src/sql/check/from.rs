//! Checks what follows FROM: tables, subqueries, joins.

use super::{Check, Checked, Spot, refuse, start};
use crate::Place;
use crate::sql::names;
use crate::sql::parse::place;
use sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, TableAlias, TableFactor,
};

impl Check<'_> {
    pub(super) fn alias(&self, alias: Option<&TableAlias>) -> Checked {
        match alias {
            Some(alias) if !alias.columns.is_empty() || alias.at.is_some() => refuse(
                place(alias.name.span.start),
                "name columns with AS inside the subquery, not after its name",
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn table(&self, factor: &TableFactor) -> Checked {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let Some(table) = names::simple(name) else {
                    return refuse(start(name), "a table name has only one part");
                };
                self.known.relation(table)?;
                self.alias(alias.as_ref())
            }
            TableFactor::Table { name, .. } => refuse(
                start(name),
                format!("{name}(...) is not supported: a query reads only the tables of the trace"),
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

    pub(super) fn join(&self, join: &Join) -> Checked {
        self.table(&join.relation)?;
        let at = start(&join.relation);
        match &join.join_operator {
            JoinOperator::Join(on) | JoinOperator::Inner(on) => self.joined(on, at),
            JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => self.joined(on, at),
            JoinOperator::CrossJoin(JoinConstraint::None) => Ok(()),
            _ => refuse(at, "the supported joins are JOIN, LEFT JOIN and CROSS JOIN"),
        }
    }

    /// Joins must compare columns for equality, combined by AND.
    pub(super) fn joined(&self, on: &JoinConstraint, at: Option<Place>) -> Checked {
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
                        "ON takes a.column = b.column, combined with AND; write other conditions \
                         after WHERE",
                    );
                }
                self.expr(on, Spot::Row)
            }
            JoinConstraint::Using(columns) => {
                columns.iter().filter_map(names::simple).try_for_each(|c| self.known.column(c))
            }
            JoinConstraint::Natural | JoinConstraint::None => {
                refuse(at, "say how to join: ON a.column = b.column, or USING (column)")
            }
        }
    }
}
