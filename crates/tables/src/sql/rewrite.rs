//! Spells out what the SQL standard says and polars does differently:
//!
//! * a column without a name is named after its text, because polars calls `sum(x)` and `max(x)`
//!   both `x`;
//! * counts have 64 bits, because those of polars have 32 and overflow in calculations;
//! * the sum of no values is null, not 0, and so is a division by 0;
//! * halves are rounded away from 0, not to the even neighbour;
//! * nulls have a rank: as the smallest value;
//! * nulls come last, whichever way rows are ordered;
//! * rows that tie in ORDER BY are ordered by the other shown columns, so that an answer is always
//!   the same.

use crate::sql::functions;
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, CeilFloorKind, DataType, DateTimeField, ExactNumberInfo,
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, OrderByExpr,
    OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Value, VisitMut, VisitorMut,
    WindowType,
};
use std::ops::ControlFlow;

/// Rewrite `query`; returns whether the order of its rows is then determined.
pub(crate) fn query(query: &mut Query) -> bool {
    let _: ControlFlow<()> = query.visit(&mut Rewrite);
    query.order_by.is_some()
}

struct Rewrite;

impl VisitorMut for Rewrite {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Select(select) = &mut *query.body else { return ControlFlow::Continue(()) };
        name_columns(select);
        let Some(order) = &mut query.order_by else { return ControlFlow::Continue(()) };
        if let OrderByKind::Expressions(by) = &mut order.kind {
            by.iter_mut().for_each(|one| by_name(one, select));
            by.extend(ties(select));
        }
        ControlFlow::Continue(())
    }

    // The inner parts are rewritten first.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) => {
                let known = functions::of(function);
                if known.is_some_and(|f| f.name.ends_with("rank")) {
                    rank_unknown(function);
                }
                if known.is_some_and(|f| f.narrow) {
                    wrap(expr, |inner| cast(inner, DataType::BigInt(None)));
                } else if known.is_some_and(|f| f.name == "round") {
                    round(expr);
                }
            }
            Expr::BinaryOp {
                op: BinaryOperator::Divide | BinaryOperator::DuckIntegerDivide,
                right,
                ..
            } if !matches!(&**right, Expr::Value(_)) => {
                **right = call("nullif", &[&**right, &number(0)]);
            }
            Expr::Cast { data_type, .. } => {
                *data_type = match data_type {
                    DataType::Int(_) | DataType::Integer(_) | DataType::BigInt(_) => {
                        DataType::BigInt(None)
                    }
                    DataType::Text | DataType::Varchar(_) => DataType::Text,
                    _ => DataType::Double(ExactNumberInfo::None),
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Give every column a name: its text.
fn name_columns(select: &mut Select) {
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item {
            let name = match &*expr {
                Expr::Identifier(_) => continue,
                Expr::CompoundIdentifier(parts) => match parts.last() {
                    Some(name) => name.value.clone(),
                    None => continue,
                },
                other => other.to_string(),
            };
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('"', name.replace('"', "'")),
            };
        }
    }
}

/// Order by a shown column's name; nulls last.
fn by_name(one: &mut OrderByExpr, select: &Select) {
    let shown = select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if *expr == one.expr => Some(alias),
        _ => None,
    });
    if let Some(alias) = shown {
        one.expr = Expr::Identifier(alias.clone());
    }
    one.options.nulls_first.get_or_insert(false);
}

/// The other shown columns, as further orders.
fn ties(select: &Select) -> Vec<OrderByExpr> {
    let name = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    };
    let options = OrderByOptions { asc: None, nulls_first: Some(false) };
    select
        .projection
        .iter()
        .filter_map(name)
        .map(|name| OrderByExpr { expr: Expr::Identifier(name), options, with_fill: None })
        .collect()
}

/// Order a rank first by whether there is a value: polars leaves nulls out if there is one order,
/// and ranks them as the smallest if there are several.
fn rank_unknown(function: &mut Function) {
    let Some(WindowType::WindowSpec(spec)) = &mut function.over else { return };
    let [by] = &spec.order_by[..] else { return };
    // As zero or one: `IS NOT NULL` would have the column's name, and equal names clash.
    let known = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::IsNull(Box::new(by.expr.clone())),
            result: number(0),
        }],
        else_result: Some(Box::new(number(1))),
    };
    spec.order_by = vec![OrderByExpr { expr: known, ..by.clone() }, by.clone()];
}

/// `round(x, digits)` as `sign(x) * floor(abs(x) * 10^digits + 0.5) / 10^digits`.
fn round(expr: &mut Expr) {
    let Expr::Function(function) = &*expr else { return };
    let FunctionArguments::List(list) = &function.args else { return };
    let mut arguments = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    let Some(x) = arguments.next() else { return };
    let digits = arguments.next().and_then(|digits| digits.to_string().parse().ok());
    let power = decimal(10_f64.powi(digits.unwrap_or(0)));
    let size = binary(call("abs", &[x]), BinaryOperator::Multiply, power.clone());
    let up = Box::new(binary(size, BinaryOperator::Plus, decimal(0.5)));
    let whole = CeilFloorKind::DateTimeField(DateTimeField::NoDateTime);
    let size = Expr::Floor { expr: up, field: whole };
    let signed = binary(call("sign", &[x]), BinaryOperator::Multiply, size);
    *expr = Expr::Nested(Box::new(binary(signed, BinaryOperator::Divide, power)));
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}

fn decimal(x: f64) -> Expr {
    Expr::value(Value::Number(format!("{x:?}"), false))
}

fn wrap(expr: &mut Expr, with: impl FnOnce(Expr) -> Expr) {
    let inner = std::mem::replace(expr, Expr::value(Value::Null));
    *expr = with(inner);
}

fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

fn number(n: i64) -> Expr {
    Expr::value(Value::Number(n.to_string(), false))
}

fn call(name: &str, arguments: &[&Expr]) -> Expr {
    use sqlparser::ast::{FunctionArgumentList, ObjectName};
    let argument = |e: &&Expr| FunctionArg::Unnamed(FunctionArgExpr::Expr((*e).clone()));
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.iter().map(argument).collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
