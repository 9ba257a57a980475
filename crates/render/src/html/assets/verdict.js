// The verdict, what speaks for it, what was ruled out, and what to do next.

function sentence(finding) {
  return el('p', { class: 'summary' }, name(finding.summary, 2000));
}

/** What the work would be without what a finding is about. */
function worth(finding) {
  if (!finding) return null;
  const w = finding.worth;
  const none = w.times < 1.005;
  const times = none ? 'no faster' : digits(w.times, 2) + ' times as fast';
  // Between like figures there is no range.
  const range = digits(w.low, 2) === digits(w.high, 2) || none && w.high < 1.005 ? ''
    : ` (${digits(w.low, 2)} to ${digits(w.high, 2)})`;
  if (w.basis === 'chains') {
    return `The work would be ${times}${range}, estimated from who woke whom: ` +
      `${clean(w.fix, 300)}.`;
  }
  if (w.basis !== 'replayed') {
    return none ? 'Without this bottleneck the work would be no faster.'
      : `Without this bottleneck the work would be at most ${times}.`;
  }
  return `The work would be ${times}${range}, according to a replay with this change: ` +
    `${clean(w.fix, 300)}.`;
}

function verdict() {
  const v = REPORT.verdict;
  const of = REPORT.findings.find((f) => f.class === v.class && f.ruled_out === null);
  const cost = of && of.lost_cpu_ns !== null && of.lost_cpu_ns > 0
    ? `costs ${duration(of.lost_cpu_ns)} of CPU time, ${percent(of.share)} of capacity` : null;
  const facts = [
    v.class !== 'not-enough-evidence' && `${Math.round(v.confidence * 100)} % sure`, cost,
    v.runner_up && `second: ${v.runner_up}`,
  ].filter(Boolean);
  const left = (REPORT.phases ?? []).filter((p) => !p.work);
  const judged = REPORT.trace.end_ns - REPORT.trace.start_ns;
  const whole = DATA.timeline && DATA.timeline.wall_ns;
  const part = left.length && whole && whole > judged
    ? `Only the work is judged: ${duration(judged)} of ${duration(whole)}. Tables and timeline ` +
      'show the whole trace.' : null;
  return section('verdict', 'Verdict',
    el('div', { class: 'card verdict', 'data-class': v.class },
      el('p', { class: 'class', text: v.class }),
      el('p', { class: 'summary' }, name(v.summary, 2000)),
      facts.length > 0 ? el('p', { class: 'dim', text: facts.join(' · ') }) : null,
      worth(of) && el('p', { class: 'gain', text: worth(of) }),
      part && el('p', { class: 'dim', text: part }),
      v.reservations.filter((r) => !v.summary.startsWith(r))
        .map((r) => el('p', { class: 'warn', text: clean(r, 1000) })),
      (REPORT.code_remarks ?? []).map((r) =>
        el('p', { class: 'dim', text: 'names of code: ' + clean(r, 1000) })),
      el('details', {}, el('summary', { text: 'Confidence, and why' }),
        el('ul', {}, v.steps.map((s) =>
          el('li', { text: `× ${s.factor}: ${clean(s.what, 500)}` }))))));
}

/** Advice of the rules that fire, and the commands that show more. */
function next() {
  const holds = REPORT.findings.filter((f) => f.ruled_out === null);
  const advice = [...new Set(holds.flatMap((f) => f.advice))];
  return section('next', 'What to do next',
    el('ol', { class: 'advice' }, advice.map((a) => el('li', {}, name(a, 2000)))),
    REPORT.next.length ? el('h3', { text: 'Commands that show more' }) : null,
    REPORT.next.map(command),
    REPORT.leads.length ? el('h3', { text: 'Suspected, not proved' }) : null,
    REPORT.leads.map((l) => el('div', {}, el('p', {}, el('b', { text: l.class + ': ' }),
      name(l.summary, 2000)), command(l.command))));
}

/** The figures of a finding, each beside its limit. */
function evidence(f) {
  return el('table', { class: 'evidence' },
    el('thead', {}, el('tr', {}, ['Figure', 'Value', 'Limit', 'From'].map((t, i) =>
      el('th', { scope: 'col', class: i === 1 || i === 2 ? 'number' : 'text', text: t })))),
    el('tbody', {}, f.evidence.map((e) => el('tr', {},
      el('td', { class: 'text' }, name(e.metric, 300)),
      el('td', { class: 'number', 'data-value': e.value ?? '',
        text: e.value === null ? 'n/a' : `${digits(e.value, 2)} ${e.unit}` }),
      el('td', { class: 'number', text: e.threshold === null ? '' : digits(e.threshold, 2) }),
      el('td', { class: 'text dim', text: e.source })))));
}

function finding(f, open) {
  const cost = f.lost_cpu_ns === null ? 'cost unknown'
    : f.lost_cpu_ns > 0 ? `${duration(f.lost_cpu_ns)}, ${percent(f.share)}` : '';
  return el('details', { open, class: 'finding', 'data-rule': f.rule,
    'data-ruled-out': f.ruled_out !== null },
    el('summary', {}, el('h3', { text: f.class }), el('span', { class: 'dim', text: ' ' + cost })),
    sentence(f),
    f.ruled_out === null ? null
      : el('p', {}, el('b', { text: 'Ruled out: ' }), name(f.ruled_out, 2000)),
    el('div', { class: 'scroll', tabindex: '0', role: 'region',
      'aria-label': 'Evidence of ' + f.class }, evidence(f)));
}

function findings() {
  const holds = REPORT.findings.filter((f) => f.ruled_out === null);
  const out = REPORT.findings.filter((f) => f.ruled_out !== null);
  return section('evidence', 'Evidence',
    holds.length ? null : el('p', { text: 'No rule fires.' }),
    holds.map((f, i) => finding(f, i === 0)),
    el('h3', { text: 'Ruled out' }),
    el('ul', { class: 'ruled' }, out.map((f) => el('li', {}, finding(f, false),
      el('p', { class: 'dim' }, name(f.ruled_out, 2000))))));
}

/** Bars of who held an object, or who waited for it. */
function people(title, list, all) {
  if (list.length === 0) return null;
  const more = (all ?? list.length) - list.length;
  return el('div', { class: 'people' }, el('h4', { text: title }),
    el('ul', {}, list.map((p) => {
      const share = p.pct ?? p.pct_explained;
      const bar = el('span', { class: 'bar', 'aria-hidden': 'true' });
      bar.style.width = Math.min(100, share ?? 0) + '%';
      return el('li', {}, bar, el('span', { class: 'who' }, name(`${p.comm} (${p.tid})`, 40)),
        el('span', { class: 'number', text: percent(share) + (p.inferred ? ' (inferred)' : '') }));
    })), more > 0 ? el('p', { class: 'dim', text: `and ${more} more` }) : null);
}

/** Functions of one side of an object, each with its share. */
function code(title, spots) {
  const named = (spots ?? []).filter((s) => s.function !== null);
  if (named.length === 0) return null;
  return el('div', { class: 'people' }, el('h4', { text: title }),
    el('ul', {}, named.map((s) => {
      const bar = el('span', { class: 'bar', 'aria-hidden': 'true' });
      bar.style.width = Math.min(100, s.pct) + '%';
      const at = s.line ?? s.dso;
      return el('li', {}, bar,
        el('span', { class: 'who' }, name(at === null ? s.function : `${s.function} (${at})`, 80)),
        el('span', { class: 'number', text: percent(s.pct) }));
    })));
}

/** What holders did while others waited. */
function holders(times) {
  const spots = (times ?? []).filter((t) => t.pct >= 1).slice(0, 6).map((t) => {
    const most = t.functions[0];
    const ran = most ? ` (${percent(most.pct)} in ${most.function})` : '';
    const what = (t.call === null ? t.title : `${t.title} in ${t.call}`) + ran;
    return { function: what, line: null, dso: null, pct: t.pct };
  });
  return code('what the holders did while other threads waited', spots);
}

/** Who holds and who waits for what costs most. */
function objects() {
  const culprits = REPORT.findings.filter((f) => f.ruled_out === null)
    .flatMap((f) => f.culprits).filter((c) => c.holders.length + c.waiters.length > 0);
  const seen = new Set(culprits.map((c) => c.kind + ' ' + c.id));
  const sheetOf = (DATA.tables.find((t) => t.name === 'waits') ?? { rows: [] }).rows;
  const rest = sheetOf.filter((w) => (w.holders ?? []).length > 0
    && !seen.has(`${w.usage ?? w.kind} ${w.object}`)).slice(0, Math.max(0, 6 - culprits.length));
  if (culprits.length + rest.length === 0) return null;
  return section('objects', 'Who holds, and who waits',
    el('p', { class: 'dim', text: 'Percentages of the time that threads waited for the object: ' +
      'for a holder, the part during which it had the object; for a waiter, the part that it ' +
      'waited.' }),
    el('div', { class: 'cards' },
      culprits.map((c) => el('div', { class: 'card', 'data-object': clean(c.id) },
        el('h3', {}, name(c.name)),
        el('p', { class: 'dim', text: `${duration(c.ns)} of CPU time` }),
        code('threads wait in', c.code?.waits), code('waits are ended in', c.code?.wakes),
        code('meanwhile the holders ran', c.code?.runs),
        code('meanwhile the holders called', c.code?.calls?.map((call) =>
          ({ function: call.call, line: null, dso: null, pct: call.pct }))),
        people('held by, or waits ended by', c.holders, c.holders_in_all),
        holders(c.holders_did),
        people('waited for by', c.waiters, c.waiters_in_all))),
      rest.map((w) => el('div', { class: 'card', 'data-object': clean(w.object) },
        el('h3', {}, name(`${w.usage ?? w.kind} ${w.object}`)),
        el('p', { class: 'dim', text: `${count(w.waits, 'wait', 'waits')}, ` +
          `${duration(w.wait_total_ns)} by ${count(w.waiters, 'thread', 'threads')}` }),
        people('held by, or waits ended by', w.holders, null), holders(w.holders_did)))));
}
