// The capacity ledger as an icicle: a node is as wide as its part of the capacity, its parts stand
// below it. A click on a node, or Enter, makes it as wide as the page.

function icicle(ledger) {
  const nodes = ledger.nodes.filter((n) => n.ns > 0);
  const levels = Math.max(1, ...nodes.map((n) => n.path.split('/').length));
  const rows = Array.from({ length: levels + 1 }, () => el('div', { class: 'level' }));
  const say = el('p', { class: 'readout', 'aria-live': 'polite' });
  const root = { path: '', ns: ledger.capacity_ns, pct: 100 };
  const all = [root, ...nodes].map((node) => ({ node, box: box(node) }));
  const begins = place(all);
  let top = root;

  function words({ path, ns, pct }) {
    return `${path || 'capacity'}: ${duration(ns)} of CPU time, ${percent(pct)} of capacity`;
  }

  function box(node) {
    const label = node.path ? node.path.split('/').pop() : 'capacity';
    const button = el('button', {
      type: 'button', class: 'node k-' + (node.path ? colour(node.path) : 'all'),
      'data-path': node.path, 'data-ns': node.ns, title: words(node), 'aria-label': words(node),
    }, el('span', { text: `${label} ${percent(node.pct)}` }));
    button.addEventListener('click', () => { top = top === node ? root : node; layout(); });
    for (const event of ['focus', 'pointerenter']) {
      button.addEventListener(event, () => { say.textContent = words(node); });
    }
    rows[node.path ? node.path.split('/').length : 0].append(button);
    return button;
  }

  function layout() {
    const [from, width] = [begins.get(top), top.ns];
    for (const { node, box: button } of all) {
      const at = begins.get(node) - from;
      const [left, right] = [at / width, (at + node.ns) / width];
      const [l, r] = [Math.max(0, left), Math.min(1, right)];
      button.hidden = r <= l;
      button.style.left = l * 100 + '%';
      button.style.width = (r - l) * 100 + '%';
      // A label needs about 60 pixels, which narrow pages have less of.
      button.classList.toggle('narrow', (r - l) * rows[0].clientWidth < 44);
    }
  }

  const chart = el('div', { class: 'icicle', role: 'group', id: 'icicle',
    'aria-label': 'Capacity ledger; nodes can be opened' }, rows);
  chart.addEventListener('keydown', (e) => {
    if (e.key === 'Escape') { top = root; layout(); }
  });
  new ResizeObserver(layout).observe(chart);
  const list = el('details', {}, el('summary', { text: 'The ledger as a table' }),
    table('ledger', [{ key: 'path', unit: 'Text' }, { key: 'ns', unit: 'Ns' },
      { key: 'pct', unit: 'Percent' }], ledger.nodes));
  return section('ledger', 'Where the CPU time went',
    el('p', { class: 'dim', text: `Capacity: ${duration(ledger.capacity_ns)} of CPU time` +
      (REPORT.trace && REPORT.trace.cpus ? `, ${count(REPORT.trace.cpus, 'CPU', 'CPUs')} for ` +
      duration(REPORT.trace.wall_ns) : '') + '. The parts add up to it exactly.' }),
    chart, say, list);
}

/** Where each node begins: after its siblings before it. */
function place(all) {
  const begins = new Map();
  const used = new Map();
  for (const { node } of all) {
    let parent = node.path.split('/').slice(0, -1).join('/');
    while (parent && !used.has(parent)) parent = parent.split('/').slice(0, -1).join('/');
    const at = node.path ? used.get(parent) : 0;
    begins.set(node, at);
    if (node.path) used.set(parent, at + node.ns);
    used.set(node.path, at);
  }
  return begins;
}
