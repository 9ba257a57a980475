// Puts the parts together.

/** What the report is about, in a line. */
function about() {
  const t = REPORT.trace;
  if (!t) return null;
  const facts = [t.format, t.cpus && count(t.cpus, 'CPU', 'CPUs'),
    t.wall_ns && duration(t.wall_ns), t.events && count(t.events, 'event', 'events'),
    t.lost_events && count(t.lost_events, 'event', 'events') + ' lost'].filter(Boolean);
  return el('p', { class: 'about' }, name(t.path, 300), ' · ', facts.join(' · '));
}

/** What went wrong while the trace was read. */
function quality() {
  const list = REPORT.quality ?? [];
  if (list.length === 0) return null;
  return section('quality', 'What the trace lacks', el('ul', {}, list.map((q) =>
    el('li', { class: q.severity === 'info' ? 'dim' : 'warn',
      text: `${digits(q.count, 0)} ${clean(q.message, 1000)}` }))));
}

/** The verdict of a gate, and everything that has no picture of its own. */
function others() {
  const drawn = new Set(['schema', 'command', 'trace', 'quality', 'ledger', 'graph', 'rows',
    'columns', 'summary']);
  if (DATA.report.findings) return [];
  const rest = Object.entries(REPORT).filter(([key]) => !drawn.has(key));
  const parts = rest.map(([key, value]) => anything(key, value)).filter(Boolean);
  const rows = DATA.tables.length === 0 && Array.isArray(REPORT.rows)
    ? [anything('rows', REPORT.rows)] : [];
  if (parts.length + rows.length === 0) return [];
  return [section('answer', heading(REPORT.command ?? 'report'), parts, rows)];
}

function tables() {
  if (DATA.tables.length === 0) return null;
  return section('tables', 'Tables', DATA.tables.map(sheet));
}

/** Light or dark: what the reader chose, else what the browser prefers. */
function themes() {
  const root = document.documentElement;
  const button = el('button', { type: 'button', id: 'theme', text: 'light / dark' });
  const dark = matchMedia('(prefers-color-scheme: dark)');
  let chosen = null;
  const show = () => {
    root.dataset.theme = chosen ?? (dark.matches ? 'dark' : 'light');
    window.dispatchEvent(new Event('themechange'));
  };
  button.addEventListener('click', () => {
    chosen = root.dataset.theme === 'dark' ? 'light' : 'dark';
    show();
  });
  dark.addEventListener('change', show);
  show();
  return button;
}

function build() {
  const judged = Boolean(REPORT.findings);
  const title = 'holdup ' + (REPORT.command ?? '');
  document.title = judged ? `${REPORT.verdict.class}: ${clean(REPORT.trace.path, 60)}` : title;
  document.getElementById('top').append(el('div', { class: 'bar' },
    el('h1', { text: title }), themes()), about() ?? '');
  const parts = [
    judged && verdict(), judged && next(), ...others(),
    REPORT.ledger && icicle(REPORT.ledger), timeline(), blocking(DATA.graph ?? REPORT.graph),
    judged && objects(), judged && findings(), tables(), quality(),
  ].filter(Boolean);
  document.getElementById('main').append(...parts);
  document.getElementById('contents').append(...parts.map((part) =>
    el('a', { href: '#' + part.id, text: part.querySelector('h2').textContent })));
  document.getElementById('foot').append(el('p', { class: 'dim',
    text: `holdup ${DATA.version}, schema ${REPORT.schema}. This page is self-contained and ` +
      'uses no network. n/a: the trace does not contain the value.' }));
}

build();
// Whoever prints wants to see what is folded.
window.addEventListener('beforeprint', () => {
  document.querySelectorAll('details').forEach((d) => { d.open = true; });
});
