//! Example queries. `tests/sql/query.rs` runs each of them.

/// A query, and the question it answers.
pub(crate) struct Example {
    pub(crate) question: &'static str,
    pub(crate) sql: &'static str,
}

const fn example(question: &'static str, sql: &'static str) -> Example {
    Example { question, sql }
}

/// All examples, from simple to long.
pub(crate) const EXAMPLES: &[Example] = &[
    example(
        "Which system calls took longest, added up?",
        "SELECT name, count(*) AS calls, sum(duration_ns) AS total_ns FROM syscalls \
         GROUP BY name ORDER BY total_ns DESC LIMIT 10",
    ),
    example(
        "The ten longest calls, and who made them",
        "SELECT at_ns, comm, tid, name, duration_ns FROM syscalls \
         ORDER BY duration_ns DESC LIMIT 10",
    ),
    example(
        "How long do calls take: median, 99th percentile, maximum?",
        "SELECT name, count(*) AS calls, median(duration_ns) AS median_ns, \
         quantile_disc(duration_ns, 0.99) AS p99_ns, max(duration_ns) AS max_ns FROM syscalls \
         GROUP BY name HAVING count(*) >= 10 ORDER BY p99_ns DESC",
    ),
    example(
        "Which calls fail, and how?",
        "SELECT name, errno, count(*) AS errors FROM syscalls WHERE errno IS NOT NULL \
         GROUP BY name, errno ORDER BY errors DESC",
    ),
    example(
        "Which threads used the CPUs most?",
        "SELECT comm, tid, sum(combined_ns) AS busy_ns, count(*) AS stays FROM runs \
         GROUP BY comm, tid ORDER BY busy_ns DESC LIMIT 10",
    ),
    example(
        "The longest times that a thread was ready but had no CPU",
        "SELECT at_ns, comm, tid, cpu, delay_ns FROM runs WHERE delay_ns IS NOT NULL \
         ORDER BY delay_ns DESC LIMIT 10",
    ),
    example(
        "What do threads wait for, and who ends the waits?",
        "SELECT kind, object, waker_comm, count(*) AS waits, sum(duration_ns) AS waited_ns \
         FROM waits GROUP BY kind, object, waker_comm ORDER BY waited_ns DESC LIMIT 10",
    ),
    example(
        "The busy time over the trace, in steps of 100 ms",
        "SELECT at_ns // 100000000 AS part, sum(duration_ns) AS busy_ns, \
         count(DISTINCT tid) AS threads FROM runs GROUP BY at_ns // 100000000 ORDER BY part",
    ),
    example(
        "How often does a thread move to another CPU?",
        "SELECT tid, max(comm) AS comm, count(*) AS moves FROM \
         (SELECT tid, comm, cpu, lag(cpu) OVER (PARTITION BY tid ORDER BY start_ns) AS before \
         FROM runs) AS r WHERE before <> cpu GROUP BY tid ORDER BY moves DESC LIMIT 10",
    ),
    example(
        "The longest call of each thread",
        "SELECT comm, tid, name, duration_ns FROM \
         (SELECT comm, tid, name, duration_ns, \
         row_number() OVER (PARTITION BY tid ORDER BY duration_ns DESC) AS place \
         FROM syscalls) AS c WHERE place = 1 ORDER BY duration_ns DESC LIMIT 10",
    ),
    example(
        "What share of each call's time was spent asleep?",
        "SELECT name, sum(duration_ns) AS total_ns, sum(blocked_ns) AS asleep_ns, \
         100.0 * sum(blocked_ns) / sum(duration_ns) AS asleep_pct FROM syscalls \
         GROUP BY name ORDER BY total_ns DESC LIMIT 10",
    ),
    example(
        "Calls of threads that ran on more than one CPU",
        "WITH wanderers AS (SELECT tid, count(DISTINCT cpu) AS cpus FROM runs GROUP BY tid \
         HAVING count(DISTINCT cpu) > 1) \
         SELECT s.name, count(*) AS calls FROM syscalls AS s \
         JOIN wanderers AS w ON s.tid = w.tid GROUP BY s.name ORDER BY calls DESC LIMIT 10",
    ),
];

/// All examples as text: the question as a comment, and the query.
pub(crate) fn text() -> String {
    let one = |e: &Example| format!("-- {}\n{}\n", e.question, e.sql);
    EXAMPLES.iter().map(one).collect::<Vec<_>>().join("\n")
}
