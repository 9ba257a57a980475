// Tables that sort by a click on a heading or the Enter key on it.

/** Rows shown before somebody asks for all. */
const FIRST_ROWS = 25;

const TITLES = {
  procs: 'Threads', syscalls: 'System calls', locks: 'Kernel locks', waits: 'What threads wait for',
  cpus: 'CPUs', cgroups: 'Services and containers', irqs: 'Interrupts',
  switches: 'Context switches', sar: 'System activity',
};

/** Numbers that measure sort largest first. */
const DESCENDS = new Set(['Count', 'Ns', 'Time', 'Percent', 'Rate', 'Ratio', 'Flag', 'Map']);

function heading(key) {
  return key.replace(/_ns$/, '').replace(/^pct_(.*)$/, '% $1').replace(/_per_s$/, '/s')
    .replace(/_/g, ' ');
}

/** The verb that prints a table, where that is not its name. */
const VERBS = { cgroups: 'ledger --by cgroup' };

/** A list of records, such as holders: each with what names it first. */
function listed(records) {
  return records.slice(0, 3).map((r) => {
    if (r.did) return `${clean(`${r.did} ${r.call ?? ''}`.trim(), 40)} ${percent(r.pct)}`;
    if ('cgroup' in r) return `${clean(r.cgroup ?? 'n/a', 40)} ${duration(r.ns)}`;
    const share = r.pct_explained ?? r.pct;
    const who = `${clean(r.comm ?? '', 40)} (${r.tid})`;
    return share === undefined || share === null ? who : `${who} ${percent(share)}`;
  }).join(', ') + (records.length > 3 ? ` and ${records.length - 3} more` : '');
}

/** A cell in words. */
function shown(value, unit, key) {
  if (value === null || value === undefined) return 'n/a';
  if (Array.isArray(value)) return listed(value);
  if (typeof value === 'object') {
    return Object.entries(value).map(([k, n]) => `${clean(k, 40)} ${digits(n, 0)}`).join(', ');
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return clean(value);
  if (unit === 'Ns') return duration(value);
  if (unit === 'Time') return duration(value - (REPORT.trace ? REPORT.trace.start_ns : 0));
  if (unit === 'Percent') return percent(value);
  if (unit === 'Id') return String(value);
  return digits(value, key === 'change' || value < 10 ? 2 : value < 100 ? 1 : 0);
}

/** What cells are compared by. */
function weight(value) {
  if (Array.isArray(value)) return value.length;
  if (value && typeof value === 'object') return Object.values(value).reduce((a, b) => a + b, 0);
  if (typeof value === 'string') return clean(value);
  return typeof value === 'boolean' ? Number(value) : value;
}

/** Ascending; what is not known comes last either way. */
function compare(a, b, sign) {
  const [x, y] = [weight(a), weight(b)];
  if (x === null || x === undefined) return y === null || y === undefined ? 0 : 1;
  if (y === null || y === undefined) return -1;
  return sign * (typeof x === 'string' ? x.localeCompare(y, 'en') : x - y);
}

/** A table of `rows`; `columns` are {key, unit}. */
function table(id, columns, rows) {
  const bodies = rows.map((row) => el('tr', {}, columns.map(({ key, unit }) => {
    const value = row[key];
    const left = typeof value === 'string' || Array.isArray(value);
    return el('td', { class: left ? 'text' : value === null ? 'number na' : 'number' },
      typeof value === 'string' ? name(value) : shown(value, unit, key));
  })));
  const body = el('tbody', {}, bodies);
  const heads = columns.map(({ key, unit }, at) => {
    const turn = el('button', { type: 'button', text: heading(key), title: key });
    const head = el('th', { scope: 'col', 'data-key': key,
      class: DESCENDS.has(unit) || unit === 'Id' ? 'number' : 'text' }, turn);
    turn.addEventListener('click', () => sort(at, head));
    return head;
  });
  const more = el('button', { type: 'button', class: 'more', hidden: rows.length <= FIRST_ROWS,
    text: `show all ${rows.length} rows` });
  more.addEventListener('click', () => { limit = Infinity; more.hidden = true; order(); });
  let limit = FIRST_ROWS;
  let sequence = rows.map((_, i) => i);

  function order() {
    sequence.forEach((i, place) => { bodies[i].hidden = place >= limit; });
    body.append(...sequence.map((i) => bodies[i]));
  }

  function sort(at, head) {
    const { key, unit } = columns[at];
    const was = head.getAttribute('aria-sort');
    const down = was ? was === 'ascending' : DESCENDS.has(unit);
    heads.forEach((h) => h.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    sequence = rows.map((_, i) => i)
      .sort((a, b) => compare(rows[a][key], rows[b][key], down ? -1 : 1) || a - b);
    order();
  }

  order();
  const grid = el('table', { 'data-table': id, 'data-rows': rows.length },
    el('thead', {}, el('tr', {}, heads)), body);
  const title = `Table ${id}, scrolls sideways`;
  return el('div', {},
    el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': title }, grid), more);
}

/** One of the page's tables, folded unless it is the first. */
function sheet({ name: id, columns, rows, left_out: out, missing, notes }, at) {
  const few = rows.length === 0;
  const known = columns.filter(({ key }) => few || rows.some((r) => r[key] !== null));
  const unknown = columns.length - known.length;
  const remarks = [
    missing && `Not in this trace. It needs the events ${missing}.`,
    out && `${count(out, 'row', 'rows')} more: holdup ${VERBS[id] ?? id} shows all.`,
    unknown && !missing && `${count(unknown, 'column is', 'columns are')} n/a in every row, and ` +
      'left out here.',
    ...notes,
  ].filter(Boolean);
  return el('details', { id: 'table-' + id, open: at === 0 },
    el('summary', {}, el('h3', { text: TITLES[id] ?? heading(id) }),
      el('span', { class: 'dim', text: ` ${count(rows.length + out, 'row', 'rows')}` })),
    few ? null : table(id, known, rows),
    remarks.map((text) => el('p', { class: 'dim', text: clean(text, 1000) })));
}

/** The unit that a key of JSON tells. */
function unitOf(key) {
  return /_ns$/.test(key) ? 'Ns' : /^pct_|_pct$|share/.test(key) ? 'Percent' : 'Count';
}

/** Anything of a report that has no picture of its own: facts as a list, records as tables. */
function anything(key, value) {
  if (value === null || typeof value !== 'object') {
    const text = typeof value === 'number' ? shown(value, unitOf(key), key) : shown(value);
    return el('p', {}, el('b', { text: heading(key) + ': ' }), name(text, 2000));
  }
  if (Array.isArray(value) && !value.some((v) => v && typeof v === 'object')) {
    if (value.length === 0) return null;
    return el('div', {}, el('h3', { text: heading(key) }),
      el('ul', {}, value.map((v) => el('li', {}, name(v, 2000)))));
  }
  if (Array.isArray(value)) {
    const keys = [...new Set(value.flatMap((row) => Object.keys(row ?? {})))];
    const simple = keys.filter((k) => value.every((r) => r === null || typeof r[k] !== 'object'
      || r[k] === null));
    return el('div', {}, el('h3', { text: heading(key) }),
      table(key, simple.map((k) => ({ key: k,
        unit: value.some((r) => r && typeof r[k] === 'string') ? 'Text' : unitOf(k) })), value));
  }
  return el('div', { class: 'part' }, el('h3', { text: heading(key) }),
    Object.entries(value).map(([k, v]) => anything(k, v)));
}
