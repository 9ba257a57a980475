//! The tables of conclusions: the trace with its verdict, findings, defects of the trace.

use crate::column::TableDef;
use crate::error::ExportError;
use crate::facts::{
    AdviceRow, CulpritRow, EvidenceRow, FindingRow, Flag, Id, Ns, Number, Percent, QualityRow,
    Ratio, Time, TraceRow,
};
use crate::rows::{Pool, Put};
use crate::{Request, TRACE};
use holdup_diagnose::Finding;
use holdup_trace::{QualityEntry, Severity};

fn number(n: u64) -> Number {
    Number(crate::facts::int(n))
}

/// The tables of this file.
pub(crate) fn tables() -> [TableDef; 6] {
    [
        TraceRow::table(),
        FindingRow::table(),
        EvidenceRow::table(),
        CulpritRow::table(),
        AdviceRow::table(),
        QualityRow::table(),
    ]
}

/// Pass on every row, with the name of its table.
pub(crate) fn rows(
    request: &Request<'_>,
    pool: &mut Pool,
    put: &mut Put<'_>,
) -> Result<(), ExportError> {
    let row = trace(request, pool).values();
    put(TRACE, &row, pool)?;
    for (n, finding) in request.diagnosis.findings.iter().enumerate() {
        let verdict =
            finding.ruled_out.is_none() && finding.class == request.diagnosis.verdict.class;
        let found = found(n as u32 + 1, finding, verdict, pool);
        put("findings", &found.finding.values(), pool)?;
        for row in found.evidence {
            put("evidence", &row.values(), pool)?;
        }
        for row in found.culprits {
            put("culprits", &row.values(), pool)?;
        }
        for row in found.advice {
            put("advice", &row.values(), pool)?;
        }
    }
    for entry in request.quality {
        let row = quality(entry, pool).values();
        put("quality", &row, pool)?;
    }
    Ok(())
}

fn trace(request: &Request<'_>, pool: &mut Pool) -> TraceRow {
    let (info, analysis) = (request.info, request.judged.analysis);
    let verdict = &request.diagnosis.verdict;
    let mut word = |text: &Option<String>| text.as_deref().map(|t| pool.word(t));
    let (hostname, os_release) = (word(&info.hostname), word(&info.os_release));
    let arch = word(&info.arch);
    let clock = word(&Some(info.clock.name.clone()).filter(|c| !c.is_empty()));
    TraceRow {
        file: pool.word(&request.file_name()),
        format: pool.word(&info.format),
        bytes: request.bytes.map(number),
        cpus: Id(analysis.cpus),
        events: number(analysis.events),
        lost_events: number(analysis.lost_events),
        start_ns: Time(analysis.start),
        end_ns: Time(analysis.end),
        wall_ns: Ns(analysis.wall_ns()),
        clock,
        hostname,
        os_release,
        arch,
        verdict: pool.word(verdict.class.id()),
        confidence: Ratio(verdict.confidence),
        summary: pool.word(&verdict.summary),
    }
}

/// All rows of the finding with index `n`.
struct Found {
    finding: FindingRow,
    evidence: Vec<EvidenceRow>,
    culprits: Vec<CulpritRow>,
    advice: Vec<AdviceRow>,
}

fn found(n: u32, f: &Finding, verdict: bool, pool: &mut Pool) -> Found {
    let finding = Id(n);
    let rule = pool.word(f.rule);
    Found {
        finding: FindingRow {
            finding,
            class: pool.word(f.class.id()),
            rule,
            story: pool.word(f.story),
            holds: Flag(f.ruled_out.is_none()),
            verdict: Flag(verdict),
            lost_cpu_ns: f.priced().map(Ns),
            share: f.priced().map(|_| Percent(f.share)),
            summary: pool.word(&f.summary),
            ruled_out: f.ruled_out.as_deref().map(|why| pool.word(why)),
        },
        evidence: (f.evidence.iter())
            .map(|e| EvidenceRow {
                finding,
                rule,
                metric: pool.word(&e.metric),
                value: e.value.map(Ratio),
                unit: pool.word(e.unit),
                threshold: e.threshold.map(Ratio),
                source: pool.word(e.source),
            })
            .collect(),
        culprits: (f.culprits.iter())
            .map(|c| CulpritRow {
                finding,
                rule,
                kind: pool.word(c.kind),
                id: pool.word(&c.id),
                name: pool.word(&c.name),
                tid: c.tid.map(Id),
                pid: c.pid.map(Id),
                ns: Ns(c.ns),
                holders: c.holders_in_all.map(number),
                waiters: c.waiters_in_all.map(number),
            })
            .collect(),
        advice: (f.advice.iter())
            .map(|text| AdviceRow { finding, rule, advice: pool.word(text) })
            .collect(),
    }
}

fn quality(entry: &QualityEntry, pool: &mut Pool) -> QualityRow {
    QualityRow {
        code: pool.word(entry.code),
        severity: pool.word(match entry.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }),
        count: number(entry.count),
        message: pool.word(entry.message),
    }
}
