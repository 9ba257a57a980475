// Who waits for whom: waiters on the left, those who end their waits on the right, a line as broad
// as the time waited.

/** Threads on each side. */
const SIDE = 16;

function blocking(graph) {
  if (!graph || graph.edges.length === 0) return null;
  const comm = new Map(graph.nodes.map((n) => [n.tid, n.comm]));
  const label = (tid) => tid === null ? 'no thread (device, interrupt …)'
    : `${comm.get(tid) ?? ''} (${tid})`;
  const pairs = new Map();
  for (const e of graph.edges) {
    const key = e.waiter + ':' + e.waker;
    const pair = pairs.get(key) ?? { waiter: e.waiter, waker: e.waker, ns: 0, waits: 0, on: [] };
    pair.ns += e.wait_ns;
    pair.waits += e.waits;
    pair.on.push(`${e.usage ?? e.kind} ${e.object}`);
    pairs.set(key, pair);
  }
  const sum = (side) => {
    const total = new Map();
    for (const p of pairs.values()) total.set(p[side], (total.get(p[side]) ?? 0) + p.ns);
    return [...total].sort((a, b) => b[1] - a[1]).slice(0, SIDE);
  };
  const [left, right] = [sum('waiter'), sum('waker')];
  const narrow = matchMedia('(max-width: 700px)');
  const picture = () => drawing({ pairs, left, right, label }, narrow.matches);
  const frame = el('div', {}, picture());
  narrow.addEventListener('change', () => frame.replaceChildren(picture()));
  return section('blocking', 'Who waits for whom', frame,
    graph.left_out ? el('p', { class: 'dim', text: 'Only the longest waits are shown; ' +
      `holdup waits --graph shows ${graph.left_out} more.` }) : null,
    graph.cycles.length ? el('p', {}, el('b', { text: 'Cycles of threads that wait: ' }),
      graph.cycles.slice(0, 5).map((cycle, i) => el('span', {}, i ? '; ' : '',
        name(cycle.slice(0, 8).map((tid) => label(tid)).join(', ') +
          (cycle.length > 8 ? ` and ${cycle.length - 8} more` : ''), 400)))) : null,
    el('details', {}, el('summary', { text: 'Waits as a table' }),
      table('edges', [{ key: 'waiter', unit: 'Id' }, { key: 'waker', unit: 'Id' },
        { key: 'kind', unit: 'Text' }, { key: 'object', unit: 'Text' },
        { key: 'waits', unit: 'Count' }, { key: 'wait_ns', unit: 'Ns' }], graph.edges)),
    graph.roots.length ? el('details', {}, el('summary', { text: 'Where chains of waits end' }),
      table('roots', [{ key: 'cause', unit: 'Text' }, { key: 'kind', unit: 'Text' },
        { key: 'object', unit: 'Text' }, { key: 'idle_blamed_ns', unit: 'Ns' },
        { key: 'pct_idle_blamed', unit: 'Percent' }], graph.roots)) : null);
}

/** The picture, of which a phone gets one that is half as wide, and so stays readable. */
function drawing({ pairs, left, right, label }, narrow) {
  const line = 26;
  const height = Math.max(left.length, right.length) * line + 34;
  const [width, a, b, letters] = narrow ? [400, 148, 252, 12] : [800, 230, 570, 24];
  const place = (list) => new Map(list.map(([tid], i) => [tid, 34 + i * line + line / 2]));
  const [from, to] = [place(left), place(right)];
  const shown = [...pairs.values()].filter((p) => from.has(p.waiter) && to.has(p.waker))
    .sort((x, y) => x.ns - y.ns);
  const most = Math.max(...shown.map((p) => p.ns));
  const words = (p) => `${clean(label(p.waiter), 30)} waited ${duration(p.ns)} in ` +
    `${count(p.waits, 'wait', 'waits')} that ${clean(label(p.waker), 30)} ended: ` +
    clean(p.on.slice(0, 3).join(', '));
  const lines = shown.map((p) => {
    const [y, z] = [from.get(p.waiter), to.get(p.waker)];
    return draw('path', { class: 'edge', 'data-waiter': p.waiter, 'data-waker': p.waker ?? '',
      'data-ns': p.ns, d: `M${a} ${y} C${(a + b) / 2} ${y} ${(a + b) / 2} ${z} ${b} ${z}`,
      'stroke-width': Math.max(1, 16 * p.ns / most) }, draw('title', { text: words(p) }));
  });
  const side = (list, at, x, anchor) => list.map(([tid, ns]) =>
    draw('text', { x, y: at.get(tid) + 4, 'text-anchor': anchor,
      text: `${clean(label(tid), letters)} ${duration(ns)}` }));
  return draw('svg', { viewBox: `0 0 ${width} ${height}`, class: 'graph', role: 'img',
    id: 'graph', 'aria-label': 'Who waits for whom: ' +
      shown.slice(-5).reverse().map(words).join('; ') },
    lines, draw('text', { class: 'head', x: a - 10, y: 18, 'text-anchor': 'end', text: 'waits' }),
    draw('text', { class: 'head', x: b + 10, y: 18, text: 'ends the wait' }),
    side(left, from, a - 10, 'end'), side(right, to, b + 10, 'start'));
}
