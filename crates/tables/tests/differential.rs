//! Generated queries return the same rows as in SQLite.
//!
//! Where the dialects differ by design, a query is written in each: holdup divides whole numbers
//! into fractions, puts nulls last, and orders ties by the shown columns.

mod support;

use holdup_render::answer::Value;
use holdup_tables::{Frames, answer, query};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use support::{COLUMNS, Random, Row};

/// One query in both dialects.
#[derive(Clone, Debug)]
struct Sql {
    ours: String,
    theirs: String,
}

impl Sql {
    fn both(text: impl Into<String>) -> Sql {
        let text = text.into();
        Sql { theirs: text.clone(), ours: text }
    }

    /// `text` with each `{}` replaced by the next part.
    fn of(text: &str, parts: &[&Sql]) -> Sql {
        let fill = |one: fn(&Sql) -> &str| {
            let mut pieces = text.split("{}");
            let mut out = pieces.next().unwrap_or_default().to_owned();
            for (piece, part) in pieces.zip(parts) {
                out += one(part);
                out += piece;
            }
            out
        };
        assert_eq!(text.matches("{}").count(), parts.len(), "{text}");
        Sql { ours: fill(|s| &s.ours), theirs: fill(|s| &s.theirs) }
    }

    fn list(parts: &[Sql]) -> Sql {
        let join = |one: fn(&Sql) -> &String| {
            parts.iter().map(|p| one(p).as_str()).collect::<Vec<_>>().join(", ")
        };
        Sql { ours: join(|s| &s.ours), theirs: join(|s| &s.theirs) }
    }
}

/// Writes queries.
struct Writer {
    random: Random,
    /// The prefix of columns: `c.` in a join.
    prefix: &'static str,
}

impl Writer {
    fn column(&mut self, among: &[&str]) -> Sql {
        let name = self.random.pick(among);
        Sql::both(format!("{}{name}", self.prefix))
    }

    fn whole(&mut self, depth: usize) -> Sql {
        if depth == 0 || self.random.one_in(3) {
            return match self.random.one_in(4) {
                true => Sql::both(format!("{}", self.random.below(30))),
                false => self.column(&["id", "tid", "spent", "lag"]),
            };
        }
        let (a, b) = (self.whole(depth - 1), self.whole(depth - 1));
        match self.random.below(9) {
            0 => Sql::of("({} + {})", &[&a, &b]),
            1 => Sql::of("({} - {})", &[&a, &b]),
            2 => Sql::of("({} * 3)", &[&a]),
            3 => Sql::of("abs({})", &[&a]),
            4 => Sql::of("coalesce({}, {})", &[&a, &b]),
            5 => Sql::of("nullif({}, {})", &[&a, &b]),
            6 => {
                let (when, text) = (self.condition(1), "CASE WHEN {} THEN {} ELSE {} END");
                Sql::of(text, &[&when, &a, &b])
            }
            7 => Sql::of("length({})", &[&self.column(&["name", "kind"])]),
            _ => {
                let (text, other) = ("abs({}) // 7", "(abs({}) / 7)");
                Sql {
                    ours: format!("({})", text.replace("{}", &a.ours)),
                    theirs: other.replace("{}", &a.theirs),
                }
            }
        }
    }

    /// A whole number that depends on a column: aggregates of constants are refused.
    fn varying(&mut self) -> Sql {
        Sql::of("{} + {}", &[&self.column(&["spent", "lag", "id"]), &self.whole(1)])
    }

    fn fraction(&mut self) -> Sql {
        match self.random.below(5) {
            0 => self.column(&["part"]),
            4 => Sql::of("ifnull(round({}), 0.5)", &[&self.column(&["part", "lag"])]),
            1 => {
                let (a, b) = (self.whole(1), self.whole(1));
                Sql {
                    ours: format!("({} / {})", a.ours, b.ours),
                    theirs: format!("(1.0 * {} / {})", a.theirs, b.theirs),
                }
            }
            2 => Sql::of("({} * 2.5)", &[&self.column(&["part", "lag"])]),
            _ => Sql::of("CAST({} AS DOUBLE)", &[&self.whole(1)]),
        }
    }

    fn word(&mut self) -> Sql {
        match self.random.below(7) {
            0 => Sql::of("lower({})", &[&self.column(&["name", "kind"])]),
            1 => Sql::of("substr({}, 2, 2)", &[&self.column(&["name"])]),
            2 => Sql::of("coalesce({}, 'none')", &[&self.column(&["kind"])]),
            3 => Sql::of("({} || '-' || {})", &[&self.column(&["name"]), &self.column(&["kind"])]),
            4 => Sql::of("replace({}, 'e', 'o')", &[&self.column(&["name"])]),
            _ => self.column(&["name", "kind"]),
        }
    }

    fn scalar(&mut self) -> Sql {
        match self.random.below(4) {
            0 => self.fraction(),
            1 => self.word(),
            2 => self.column(&["done", "address"]),
            _ => self.whole(2),
        }
    }

    fn condition(&mut self, depth: usize) -> Sql {
        if depth > 0 && self.random.one_in(3) {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.random.below(3) {
                0 => Sql::of("({} AND {})", &[&a, &b]),
                1 => Sql::of("({} OR {})", &[&a, &b]),
                _ => Sql::of("(NOT {})", &[&a]),
            };
        }
        match self.random.below(12) {
            11 => Sql::of(
                "CASE {} WHEN 'lock' THEN {} ELSE false END",
                &[&self.column(&["kind"]), &self.column(&["done"])],
            ),
            0 => Sql::of("{} IS NULL", &[&self.column(&["lag", "kind", "part"])]),
            1 => Sql::of("{} IS NOT NULL", &[&self.column(&["lag", "kind", "part"])]),
            2 => Sql::of("{} BETWEEN -2 AND 60", &[&self.whole(1)]),
            3 => Sql::of("{} IN (100, 5, 103, -3)", &[&self.whole(1)]),
            4 => Sql::of("{} NOT IN (100, 5, 103)", &[&self.whole(1)]),
            5 => Sql::of("{} IN ('read', 'lock')", &[&self.column(&["name", "kind"])]),
            6 => Sql::of("{} LIKE '%e_%'", &[&self.column(&["name", "kind"])]),
            7 => Sql::of("{} NOT LIKE 'r%'", &[&self.column(&["name", "kind"])]),
            8 => Sql::of("{} = {}", &[&self.word(), &self.word()]),
            9 => Sql::of("{}", &[&self.column(&["done"])]),
            _ => {
                let compare = self.random.pick(&["<", "<=", "=", "<>", ">", ">="]);
                Sql::of(&format!("{{}} {compare} {{}}"), &[&self.whole(1), &self.whole(1)])
            }
        }
    }

    fn filter(&mut self) -> Sql {
        match self.random.one_in(2) {
            true => Sql::of(" WHERE {}", &[&self.condition(2)]),
            false => Sql::both(""),
        }
    }

    fn aggregate(&mut self) -> Sql {
        match self.random.below(8) {
            0 => Sql::both("count(*)"),
            1 => Sql::of("count({})", &[&self.column(COLUMNS)]),
            2 => Sql::of("count(DISTINCT {})", &[&self.column(COLUMNS)]),
            3 => Sql::of("sum({})", &[&self.varying()]),
            4 => Sql::of("avg({})", &[&self.varying()]),
            5 => Sql::of("min({})", &[&self.varying()]),
            6 => Sql::of("max({})", &[&self.word()]),
            _ => Sql::of("sum({} + {})", &[&self.column(&["part"]), &self.fraction()]),
        }
    }

    fn measure(&mut self) -> Sql {
        match self.random.below(4) {
            0 => Sql::of("{} - {}", &[&self.aggregate_of_numbers(), &self.aggregate_of_numbers()]),
            1 => Sql::of("coalesce({}, 0)", &[&self.aggregate_of_numbers()]),
            _ => self.aggregate(),
        }
    }

    fn aggregate_of_numbers(&mut self) -> Sql {
        match self.random.below(4) {
            0 => Sql::both("count(*)"),
            1 => Sql::of("max({})", &[&self.varying()]),
            _ => Sql::of("sum({})", &[&self.varying()]),
        }
    }

    /// The keys of a GROUP BY: columns, or computed values.
    fn keys(&mut self) -> Vec<Sql> {
        let count = 1 + self.random.below(2);
        let mut keys: Vec<Sql> = Vec::new();
        for _ in 0..count {
            let key = match self.random.below(4) {
                0 => Sql::of("coalesce({}, 'none')", &[&self.column(&["kind"])]),
                1 => self.column(&["kind", "done"]),
                _ => self.column(&["tid", "name", "lag"]),
            };
            if !keys.iter().any(|k| k.ours == key.ours) {
                keys.push(key);
            }
        }
        keys
    }

    fn window(&mut self) -> Sql {
        let partition = match self.random.below(3) {
            0 => Sql::both(""),
            1 => Sql::of("PARTITION BY {} ", &[&self.column(&["tid", "kind"])]),
            _ => Sql::of(
                "PARTITION BY {}, {} ",
                &[&self.column(&["tid"]), &self.column(&["name", "done"])],
            ),
        };
        let way = self.random.pick(&["", " DESC"]);
        // No ties: rows that tie have no defined order in either database.
        let order = match self.random.one_in(2) {
            true => Sql::of(&format!("ORDER BY {{}}{way}"), &[&self.column(&["id"])]),
            false => Sql::of(
                &format!("ORDER BY {{}}{way}, {{}}{way}"),
                &[&self.column(&["spent", "name", "lag"]), &self.column(&["id"])],
            ),
        };
        let rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW";
        let ties =
            Sql::of(&format!("ORDER BY {{}}{way}"), &[&self.column(&["spent", "name", "lag"])]);
        let value = self.varying();
        match self.random.below(12) {
            0 => Sql::of("row_number() OVER ({}{})", &[&partition, &order]),
            1 => Sql::of("rank() OVER ({}{})", &[&partition, &ties]),
            2 => Sql::of("dense_rank() OVER ({}{})", &[&partition, &ties]),
            3 => Sql::of("lag({}) OVER ({}{})", &[&value, &partition, &order]),
            4 => Sql::of("lead({}, 2) OVER ({}{})", &[&value, &partition, &order]),
            5 => Sql::of("first_value({}) OVER ({}{})", &[&value, &partition, &order]),
            6 => {
                Sql::of(&format!("sum({{}}) OVER ({{}}{{}} {rows})"), &[&value, &partition, &order])
            }
            7 => {
                Sql::of(&format!("max({{}}) OVER ({{}}{{}} {rows})"), &[&value, &partition, &order])
            }
            8 => Sql::of(
                &format!("count({{}}) OVER ({{}}{{}} {rows})"),
                &[&value, &partition, &order],
            ),
            9 => Sql::of(&format!("count(*) OVER ({{}}{{}} {rows})"), &[&partition, &order]),
            10 => Sql::of("avg({}) OVER ({})", &[&value, &partition]),
            _ => Sql::of("sum({}) OVER ({})", &[&value, &partition]),
        }
    }

    /// `columns` named `a`, `b`, …
    fn named(columns: &[Sql]) -> Sql {
        let name =
            |(i, c): (usize, &Sql)| Sql::of(&format!("{{}} AS {}", (b'a' + i as u8) as char), &[c]);
        Sql::list(&columns.iter().enumerate().map(name).collect::<Vec<_>>())
    }

    /// An order by all columns, perhaps with a limit; nothing in one of two cases.
    fn order(&mut self, columns: usize) -> (Sql, bool) {
        if self.random.one_in(2) {
            return (Sql::both(""), false);
        }
        let name = |i: usize| (b'a' + i as u8) as char;
        let first = self.random.below(columns);
        let way = self.random.pick(&["", " DESC", " DESC NULLS FIRST"]);
        let ours = format!(" ORDER BY {}{way}", name(first));
        let last = if way.ends_with("FIRST") { "" } else { " NULLS LAST" };
        let mut theirs = format!(" ORDER BY {}{way}{last}", name(first));
        for i in 0..columns {
            theirs += &format!(", {} NULLS LAST", name(i));
        }
        let limit = match self.random.below(3) {
            0 => format!(" LIMIT {}", self.random.below(20)),
            1 => format!(" LIMIT {} OFFSET {}", self.random.below(20), self.random.below(9)),
            _ => String::new(),
        };
        (Sql { ours: ours + &limit, theirs: theirs + &limit }, true)
    }

    fn plain(&mut self) -> (Sql, bool) {
        let columns: Vec<Sql> = (0..1 + self.random.below(4)).map(|_| self.scalar()).collect();
        let distinct = self.random.pick(&["", "DISTINCT "]);
        let (order, ordered) = self.order(columns.len());
        let text = format!("SELECT {distinct}{{}} FROM calls{{}}{{}}");
        (Sql::of(&text, &[&Self::named(&columns), &self.filter(), &order]), ordered)
    }

    fn grouped(&mut self, from: &str) -> (Sql, bool) {
        let keys = self.keys();
        let mut columns = keys.clone();
        columns.extend((0..1 + self.random.below(3)).map(|_| self.measure()));
        let (order, ordered) = self.order(columns.len());
        let having = match self.random.one_in(3) {
            true => Sql::of(
                " HAVING {} > {}",
                &[&self.aggregate_of_numbers(), &Sql::both(self.random.below(20).to_string())],
            ),
            false => Sql::both(""),
        };
        let text = format!("SELECT {{}} FROM {from}{{}} GROUP BY {{}}{{}}{{}}");
        let parts = [&Self::named(&columns), &self.filter(), &Sql::list(&keys), &having, &order];
        (Sql::of(&text, &parts), ordered)
    }

    fn totals(&mut self) -> (Sql, bool) {
        let columns: Vec<Sql> = (0..1 + self.random.below(3)).map(|_| self.measure()).collect();
        (Sql::of("SELECT {} FROM calls{}", &[&Self::named(&columns), &self.filter()]), false)
    }

    fn windows(&mut self) -> (Sql, bool) {
        let mut columns = vec![self.column(&["id"])];
        columns.extend((0..1 + self.random.below(2)).map(|_| self.window()));
        let (order, ordered) = self.order(columns.len());
        let text = "SELECT {} FROM calls{}{}";
        (Sql::of(text, &[&Self::named(&columns), &self.filter(), &order]), ordered)
    }

    fn joined(&mut self) -> (Sql, bool) {
        let join = self.random.pick(&["JOIN", "LEFT JOIN"]);
        let on = self.random.pick(&[
            "c.tid = s.tid",
            "c.lag = s.lag",
            "c.name = s.name AND c.tid = s.tid",
        ]);
        let from = format!("calls AS c {join} stays AS s ON {on}");
        self.prefix = "c.";
        let (sql, ordered) = match self.random.one_in(2) {
            true => self.grouped(&from),
            false => {
                let mine = self.scalar();
                self.prefix = "s.";
                let columns = [mine, self.scalar(), self.column(COLUMNS)];
                let (order, ordered) = self.order(columns.len());
                let filter = if join == "JOIN" { self.filter() } else { Sql::both("") };
                let text = format!("SELECT {{}} FROM {from}{{}}{{}}");
                (Sql::of(&text, &[&Self::named(&columns), &filter, &order]), ordered)
            }
        };
        self.prefix = "";
        (sql, ordered)
    }

    fn nested(&mut self) -> (Sql, bool) {
        let condition = self.condition(1);
        let filter = self.filter();
        let text = match self.random.below(10) {
            9 => {
                "SELECT tid AS a, kind AS b FROM calls WHERE {} \
                 EXCEPT SELECT tid, kind FROM stays{}"
            }
            8 => {
                "SELECT tid AS a, kind AS b FROM calls WHERE {} \
                 INTERSECT SELECT tid, kind FROM stays{}"
            }
            7 => {
                "SELECT tid AS a, count(*) AS b FROM calls JOIN \
                 (SELECT tid FROM stays WHERE {}) AS s USING (tid){} GROUP BY tid"
            }
            0 => {
                "SELECT id AS a, spent AS b FROM calls WHERE tid IN (SELECT \
                 tid FROM stays WHERE {}){}"
            }
            1 => {
                "SELECT id AS a, spent AS b FROM calls WHERE name NOT IN (SELECT \
                 name FROM stays WHERE {}){}"
            }
            2 => {
                "SELECT id AS a, mean AS b FROM calls CROSS JOIN \
                 (SELECT avg(spent) AS mean FROM stays WHERE {}) AS m WHERE spent > mean{}"
            }
            3 => {
                "WITH w AS (SELECT tid, sum(spent) AS total FROM calls WHERE {} \
                 GROUP BY tid) SELECT tid AS a, total AS b FROM w WHERE total > 100{}"
            }
            4 => {
                "SELECT tid AS a, kind AS b FROM calls WHERE {} UNION SELECT tid, kind FROM stays{}"
            }
            5 => {
                "SELECT kind AS a, count(*) AS b FROM (SELECT kind, tid FROM calls \
                 WHERE {} UNION ALL SELECT kind, tid FROM stays{}) AS u GROUP BY kind"
            }
            _ => {
                "SELECT a, count(*) AS b FROM (SELECT tid AS a, name FROM calls \
                 WHERE {} ORDER BY id LIMIT 30) AS l{} GROUP BY a"
            }
        };
        let filter = match text.contains("){}")
            || text.contains("mean{}")
            || text.contains("100{}")
            || text.contains("l{}")
        {
            // These already have a condition, or other columns.
            true => Sql::both(""),
            false => filter,
        };
        (Sql::of(text, &[&condition, &filter]), false)
    }

    fn query(&mut self) -> (Sql, bool) {
        match self.random.below(7) {
            0 => self.plain(),
            1 | 2 => self.grouped("calls"),
            3 => self.totals(),
            4 => self.windows(),
            5 => self.joined(),
            _ => self.nested(),
        }
    }
}

fn sqlite(tables: &[(&str, &[Row])]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.pragma_update(None, "case_sensitive_like", true).unwrap();
    for (name, rows) in tables {
        connection
            .execute_batch(&format!(
                "CREATE TABLE {name} (id INTEGER, tid INTEGER, spent INTEGER, lag INTEGER, \
                 part REAL, name TEXT, kind TEXT, done INTEGER, address INTEGER)"
            ))
            .unwrap();
        let insert = format!("INSERT INTO {name} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
        let mut insert = connection.prepare(&insert).unwrap();
        for r in *rows {
            // SQLite has no integers above 63 bits: all addresses are negative there.
            let address = r.address as i64;
            insert
                .execute((r.id, r.tid, r.spent, r.lag, r.part, &r.name, r.kind, r.done, address))
                .unwrap();
        }
    }
    connection
}

/// A row as text; numbers by their value, so that `true` is `1` and 2 is 2.0.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Bool(b) => number(f64::from(u8::from(*b))),
        Value::Int(n) => number(*n as i64 as f64),
        Value::Float(x) => number(*x),
        Value::Text(text) => format!("'{text}'"),
    }
}

fn number(x: f64) -> String {
    // Nine digits: sums of fractions depend on their order.
    let digits = format!("{x:.8e}");
    if digits.starts_with("-0.00000000e") { "0.00000000e0".into() } else { digits }
}

fn their_rows(connection: &Connection, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let mut statement = connection.prepare(sql).map_err(|e| e.to_string())?;
    let columns = statement.column_count();
    let mut rows = statement.query([]).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(|e| e.to_string())? {
        let cell = |i| match row.get_ref(i).unwrap() {
            ValueRef::Null => "NULL".to_owned(),
            ValueRef::Integer(n) => number(n as f64),
            ValueRef::Real(x) => number(x),
            ValueRef::Text(t) => format!("'{}'", std::str::from_utf8(t).unwrap()),
            ValueRef::Blob(_) => "blob".to_owned(),
        };
        found.push((0..columns).map(cell).collect());
    }
    Ok(found)
}

fn our_rows(frames: &Frames, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let rows = query(frames, sql).and_then(|f| answer(&f)).map_err(|e| e.to_string())?;
    Ok(rows.rows.iter().map(|row| row.iter().map(word).collect()).collect())
}

/// The number of queries, set with `HOLDUP_QUERIES`, or the seed, set with `HOLDUP_SEED`.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn generated_queries_give_the_rows_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let (calls, stays) = support::export(folder.path());
    let frames = support::open(folder.path());
    let connection = sqlite(&[("calls", &calls), ("stays", &stays)]);
    let (count, seed) = (setting("HOLDUP_QUERIES", 700), setting("HOLDUP_SEED", 1));
    let (mut failures, mut filled, mut named_alike) = (Vec::new(), 0, 0);
    for i in 0..count {
        let mut writer = Writer { random: Random::new(seed * 1_000_003 + i), prefix: "" };
        let (sql, ordered) = writer.query();
        let theirs = their_rows(&connection, &sql.theirs);
        let ours = our_rows(&frames, &sql.ours);
        let same = match (ours.clone(), theirs.clone()) {
            (Ok(mut ours), Ok(mut theirs)) => {
                filled += usize::from(!theirs.is_empty());
                if !ordered {
                    ours.sort();
                    theirs.sort();
                }
                ours == theirs
            }
            (Err(why), Ok(_)) => {
                // Two keys of one column clash in polars, which says so.
                named_alike += u64::from(why.contains("have the same name"));
                why.contains("have the same name")
            }
            _ => false,
        };
        if !same {
            let short = |rows: Result<Vec<Vec<String>>, String>| match rows {
                Ok(rows) => format!("{} rows {:?}", rows.len(), &rows[..rows.len().min(6)]),
                Err(e) => e,
            };
            failures.push(format!(
                "query {i}\n{}\n{}\nours   {}\ntheirs {}\n",
                sql.ours,
                sql.theirs,
                short(ours),
                short(theirs)
            ));
        }
    }
    assert!(failures.is_empty(), "{} of {count} queries\n{}", failures.len(), failures.join("\n"));
    assert!(named_alike * 50 < count, "{named_alike} of {count} queries are not answered");
    assert!(filled * 2 > count as usize, "only {filled} of {count} answers have rows");
}
