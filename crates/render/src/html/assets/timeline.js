// What happened when: phases, concurrency, and a lane for each CPU and thread that zooms down to
// single switches.

/** Height of a lane, and of the scale above them. */
const LANE = 18;
const SCALE = 22;

const WAITS = ['thread-sync', 'kernel-service', 'kernel-lock', 'io', 'outside', 'asleep'];

/** The phases as a strip; a click on one shows it on the timeline. */
function strip(phases, t, show) {
  if (!phases || phases.length < 2) return null;
  const start = phases[0].start_ns;
  const boxes = phases.map((p) => {
    const words = `phase ${p.phase}, ${p.part}: ${duration(p.end_ns - p.start_ns)}, ` +
      `${digits(p.busy_cpus, 1)} busy CPUs, most time in ${p.leading_leaf}` +
      (p.class ? `, ${p.class}` : '');
    const box = el('button', { type: 'button', title: words, 'aria-label': words,
      'data-phase': p.phase, class: 'phase k-' + colour(p.leading_leaf) + (p.work ? '' : ' edge') },
    el('span', { text: `${p.phase} ${p.part}${p.class ? ': ' + p.class : ''}` }));
    box.style.width = 100 * (p.end_ns - p.start_ns) / t.wall_ns + '%';
    box.addEventListener('click', () => show(p.start_ns - start, p.end_ns - start));
    return box;
  });
  return el('div', {}, el('h3', { text: 'Phases' }), el('div', { class: 'strip' }, boxes));
}

/** How many CPUs or threads a height stands for; `place` gives its distance from the top. */
function axis(most, cpus, place) {
  const by = Math.max(1, step(most, 4));
  const marks = [];
  for (let n = by; n < most - by / 2; n += by) marks.push(n);
  const label = (n, text) => {
    const mark = el('span', { text });
    mark.style.top = place(n) + '%';
    return mark;
  };
  return el('div', { class: 'axis', 'aria-hidden': 'true' },
    label(most, `${digits(most, 1)} ${most > cpus ? 'threads' : 'CPUs'}`),
    marks.reverse().map((n) => label(n, digits(n, 1))), label(0, '0'));
}

/** Busy CPUs, and why the others idled, over time; a line for threads running or ready. */
function concurrency(t, cpus) {
  const b = t.bins;
  const called = ((DATA.tables.find((s) => s.name === 'cpus') ?? { rows: [] }).rows[0] ?? {})
    .user_ns !== null;
  const irq = b.irq.map((x, i) => x + b.softirq[i]);
  const wait = (i) => ['' + t.doings[t.causes[i]].id, 'idle: ' + t.doings[t.causes[i]].title,
    b.waiting[i]];
  const known = b.idle.map((_, i) => b.scheduler[i] + b.waiting.reduce((n, w) => n + w[i], 0));
  const layers = [
    ['running', called ? 'application code' : 'application threads', b.user],
    ['kernel', 'system calls', b.kernel], ['kernel-thread', 'kernel threads', b.kthread],
    ['irq', 'interrupts', irq], ...t.causes.map((_, i) => wait(i)),
    ['ready', 'idle: a thread was ready elsewhere', b.scheduler],
    ['idle', 'idle: no work', b.idle.map((x, i) => Math.max(0, x - known[i]))],
    ['unknown', 'unknown', b.unaccounted],
  ].filter(([, , list]) => list.some((x) => x > 0));
  const [width, height] = [1000, 150];
  const length = b.end.map((e, i) => e - (i ? b.end[i - 1] : 0));
  const active = b.active.map((x, i) => x / Math.max(1, length[i]));
  const most = Math.max(cpus, Math.min(4 * cpus, Math.max(...active)));
  const x = (ns) => width * ns / t.wall_ns;
  const y = (n) => height - height * Math.min(n, most) / most;
  const below = b.end.map(() => 0);
  const areas = layers.map(([id, title, list]) => {
    let d = '';
    list.forEach((ns, i) => {
      if (ns <= 0) return;
      const [low, high] = [below[i] / length[i], (below[i] + ns) / length[i]];
      const [l, r] = [x(b.end[i] - length[i]), x(b.end[i])];
      d += `M${l.toFixed(1)} ${y(low).toFixed(1)}V${y(high).toFixed(1)}` +
        `H${r.toFixed(1)}V${y(low).toFixed(1)}Z`;
      below[i] += ns;
    });
    return draw('path', { d, class: 'area f-' + id, 'data-layer': title,
      'data-ns': list.reduce((n, v) => n + v, 0) }, draw('title', { text: title }));
  });
  const curve = active.map((n, i) => `${i ? 'L' : 'M'}${x(b.end[i] - length[i]).toFixed(1)} ` +
    `${y(n).toFixed(1)}H${x(b.end[i]).toFixed(1)}`).join('');
  const mean = active.reduce((n, v, i) => n + v * length[i], 0) / Math.max(1, t.wall_ns);
  const busy = layers.slice(0, 4).filter(([id]) => ['running', 'kernel', 'kernel-thread', 'irq']
    .includes(id)).reduce((n, [, , list]) => n + list.reduce((m, v) => m + v, 0), 0) / t.wall_ns;
  const say = `${digits(busy, 2)} of ${cpus} CPUs busy on average; ${digits(mean, 2)} threads ` +
    'running or ready';
  return el('div', {}, el('h3', { text: 'CPUs over time' }),
    el('p', { class: 'dim', text: say + '.' }),
    el('div', { class: 'chart' }, axis(most, cpus, (n) => 100 * y(n) / height),
      draw('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none',
        id: 'concurrency', class: 'concurrency', role: 'img', 'aria-label': say,
        'data-busy': busy, 'data-cpus': cpus },
      areas, draw('path', { class: 'line', d: `M0 ${y(cpus)}H${width}` }),
      draw('path', { class: 'curve', d: curve, fill: 'none' }))),
    legend([...layers.map(([id, title]) => [id, title]),
      ['curve', 'threads running or ready'], ['line', 'number of CPUs']]));
}

/** Pieces of a lane as rectangles of pixels. */
function unpack(pieces) {
  const list = [];
  for (let i = 0, at = 0; i < pieces.length; i += 3) {
    list.push({ from: at, to: at + pieces[i], what: pieces[i + 1], pct: pieces[i + 2] });
    at += pieces[i];
  }
  return list;
}

/** Intervals of the close-up; `each` numbers a piece. */
function unroll(spans, begin, each) {
  const list = [];
  for (let i = 0, at = begin; i < spans.length; i += each) {
    const from = at + spans[i];
    at = from + spans[i + 1];
    list.push({ from, to: at, what: spans[i + 2], who: spans[i + 3],
      object: each > 4 ? spans[i + 4] : -1 });
  }
  return list;
}

/** The first of a sorted list that ends after `at`. */
function first(list, at) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].to <= at) low = middle + 1; else high = middle;
  }
  return low;
}

/** Steps of 1, 2 or 5 times a power of ten, about `n` of them in `span`. */
function step(span, n) {
  const raw = span / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
}

/** The lanes, and `show(from, to)` that zooms them. */
function lanes(t) {
  const [begin, end] = t.window;
  const KERNEL = t.doings.findIndex((d) => d.id === 'kernel-thread');
  const threads = t.threads.map((r) => ({ label: `${clean(r.comm, 40)} (${r.tid})`,
    pieces: unpack(r.pieces), spans: unroll(r.spans, begin, 5), cpu: false, tid: r.tid,
    kernel: r.kernel, data: { 'data-tid': r.tid, 'data-running-ns': r.running_ns } }));
  const kernel = threads.filter((r) => r.kernel);
  const all = [
    ...t.cpus.map((c) => ({ label: `CPU ${c.cpu}`, pieces: unpack(c.pieces),
      spans: unroll(c.spans, begin, 4), cpu: true,
      data: { 'data-cpu': c.cpu, 'data-idle-ns': c.idle_ns } })),
    ...threads.filter((r) => !r.kernel), ...kernel,
  ];
  /** What is looked for, and whether threads of the kernel have lanes. */
  const choice = { text: '', kernel: false };
  let rows = [];
  const state = { from: 0, to: t.wall_ns, row: 0, at: null };
  const canvas = el('canvas', { id: 'lanes', tabindex: '0', role: 'application',
    'aria-label': 'Timeline of CPUs and threads', 'aria-describedby': 'lanes-keys lanes-say' });
  const labels = el('div', { class: 'labels' });
  const say = el('p', { id: 'lanes-say', class: 'readout', 'aria-live': 'polite' });
  const context = canvas.getContext('2d');
  let colours = [];

  function theme() {
    colours = t.doings.map((d) => paint(d.id));
    colours.ink = paint('ink');
    colours.rule = paint('rule');
    colours.mark = paint('mark');
    colours.on = paint('on');
    colours.dark = '#0e1116';
  }

  const width = () => canvas.clientWidth || 600;
  const x = (ns) => (ns - state.from) / (state.to - state.from) * width();
  /** Whether a pixel shows less time than a piece has. */
  const close = () => (state.to - state.from) / width() < t.pixel_ns;

  function paintLane(row, y) {
    const perPixel = t.pixel_ns;
    const zoomed = close();
    for (let i = first(row.pieces, state.from / perPixel); i < row.pieces.length; i++) {
      const p = row.pieces[i];
      if (p.from * perPixel > state.to) break;
      if (p.what === 0) continue;
      const l = Math.max(0, x(p.from * perPixel));
      const r = Math.min(width(), x(p.to * perPixel));
      context.globalAlpha = 0.35 + 0.65 * p.pct / 100;
      context.fillStyle = colours[p.what];
      context.fillRect(l, y + 2, Math.max(r - l, 0.6), LANE - 4);
    }
    context.globalAlpha = 1;
    if (!zoomed || begin >= state.to || end <= state.from) return;
    // What single switches show takes the place of the pieces.
    context.clearRect(Math.max(0, x(begin)), y, Math.min(width(), x(end)) - Math.max(0, x(begin)),
      LANE);
    for (let i = first(row.spans, state.from); i < row.spans.length; i++) {
      const s = row.spans[i];
      if (s.from > state.to) break;
      const [l, r] = [Math.max(0, x(s.from)), Math.min(width(), x(s.to))];
      context.fillStyle = colours[s.what];
      context.fillRect(l, y + 2, Math.max(r - l, 0.6), LANE - 4);
      if (row.cpu && s.who >= 0 && s.what && r - l > 60) {
        context.fillStyle = colours[s.what === KERNEL ? 'dark' : 'on'];
        context.fillText(clean(t.people[s.who].comm, Math.floor((r - l) / 7)), l + 4,
          y + LANE - 5);
      }
    }
  }

  /** The lanes that were chosen. */
  function choose() {
    const fits = (r) => r.label.toLowerCase().includes(choice.text);
    rows = choice.text ? all.filter(fits) : all.filter((r) => !r.kernel || choice.kernel);
    labels.replaceChildren(...rows.map((r) =>
      el('div', { ...r.data, title: r.label }, name(r.label, 60))));
    state.row = Math.max(0, Math.min(state.row, rows.length - 1));
    render();
  }

  /** Who ended the sleeps of the thread under the cursor: arrows from lane to lane. */
  function arrows() {
    const row = rows[state.row];
    if (state.at === null || !row || row.cpu || !close()) return 0;
    const lane = new Map(rows.map((r, i) => [r.tid, i]));
    const middle = (i) => SCALE + i * LANE + LANE / 2;
    context.strokeStyle = context.fillStyle = colours.ink;
    let drawn = 0;
    for (let i = first(row.spans, state.from); i < row.spans.length; i++) {
      const s = row.spans[i];
      if (s.to > state.to) break;
      const from = s.who >= 0 ? lane.get(t.people[s.who].tid) : undefined;
      if (from === undefined || from === state.row) continue;
      const [at, y, z] = [Math.round(x(s.to)) + 0.5, middle(from), middle(state.row)];
      const head = Math.sign(z - y) * 6;
      context.beginPath();
      context.moveTo(at, y);
      context.lineTo(at, z);
      context.stroke();
      context.beginPath();
      context.moveTo(at, z);
      context.lineTo(at - 3.5, z - head);
      context.lineTo(at + 3.5, z - head);
      context.fill();
      drawn += 1;
    }
    return drawn;
  }

  function scale() {
    context.fillStyle = colours.ink;
    context.strokeStyle = colours.rule;
    const by = step(state.to - state.from, Math.max(2, width() / 110));
    for (let at = Math.ceil(state.from / by) * by; at <= state.to; at += by) {
      const place = Math.round(x(at)) + 0.5;
      context.beginPath();
      context.moveTo(place, SCALE - 5);
      context.lineTo(place, canvas.clientHeight);
      context.stroke();
      if (place < width() - 50) context.fillText(tick(at, by), place + 3, SCALE - 9);
    }
    context.fillStyle = colours.mark;
    context.fillRect(x(begin), SCALE - 4, Math.max(2, x(end) - x(begin)), 3);
  }

  /** A time with as many digits as tell two ticks apart. */
  function tick(at, by) {
    const [unit, word] = by >= 1e8 ? [1e9, 's'] : by >= 1e5 ? [1e6, 'ms'] : [1e3, 'µs'];
    const places = Math.max(0, Math.ceil(-Math.log10(by / unit)));
    return (at / unit).toLocaleString('en-US', { minimumFractionDigits: places,
      maximumFractionDigits: places }) + ' ' + word;
  }

  function render() {
    const ratio = window.devicePixelRatio || 1;
    const height = SCALE + rows.length * LANE;
    canvas.style.height = height + 'px';
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = '11px system-ui, sans-serif';
    context.clearRect(0, 0, width(), height);
    scale();
    rows.forEach((row, i) => paintLane(row, SCALE + i * LANE));
    const drawn = arrows();
    if (state.at !== null) {
      context.fillStyle = colours.ink;
      context.fillRect(Math.round(x(state.at)), SCALE, 1, height - SCALE);
      context.strokeStyle = colours.ink;
      context.strokeRect(0.5, SCALE + state.row * LANE + 0.5, width() - 1, LANE - 1);
    }
    const exact = close() && state.from >= begin && state.to <= end;
    Object.assign(canvas.dataset, { from: Math.round(state.from), to: Math.round(state.to),
      lanes: rows.length, arrows: drawn, shows: exact ? 'switches' : 'pixels' });
  }

  /** What a lane shows at a time, in words. */
  function words() {
    const row = rows[state.row];
    if (!row) return '';
    const at = state.at;
    const when = `${row.label} at ${duration(at)}: `;
    if (close() && at >= begin && at < end) {
      const s = row.spans[first(row.spans, at)];
      if (s && s.from <= at) {
        const who = s.who >= 0 ? t.people[s.who] : null;
        const person = who && `${clean(who.comm, 40)} (${who.tid})`;
        return when + t.doings[s.what].title + (row.cpu && who ? `, ${person}` : '') +
          (s.object >= 0 ? `, ${clean(t.objects[s.object])}` : '') +
          `, ${duration(s.to - s.from)}` + (!row.cpu && who ? `, ended by ${person}` : '');
      }
    }
    const p = row.pieces[first(row.pieces, at / t.pixel_ns)];
    if (!p || p.from > at / t.pixel_ns) return when + t.doings[0].title;
    return when + t.doings[p.what].title +
      (p.pct < 100 ? `, ${p.pct} % of ${duration(t.pixel_ns)}` : '');
  }

  function show(from, to) {
    const span = Math.min(t.wall_ns, Math.max(to - from, 500));
    state.from = Math.min(Math.max(0, from), t.wall_ns - span);
    state.to = state.from + span;
    render();
  }

  function zoom(by, around) {
    const span = (state.to - state.from) * by;
    const part = (around - state.from) / (state.to - state.from);
    show(around - part * span, around + (1 - part) * span);
  }

  const middle = () => state.at !== null && state.at > state.from && state.at < state.to
    ? state.at : (state.from + state.to) / 2;
  const pan = (part) => {
    const by = (state.to - state.from) * part;
    show(state.from + by, state.to + by);
  };

  /** Puts the cursor on a place. */
  function point(row, at) {
    state.row = Math.min(Math.max(0, row), rows.length - 1);
    state.at = Math.min(Math.max(state.from, at), state.to);
    say.textContent = words();
    render();
  }

  const hop = (row, part) =>
    point(row, (state.at ?? middle()) + part * (state.to - state.from));
  const whole = () => show(0, t.wall_ns);
  const busiest = () => show(begin, end);
  const keys = {
    ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
    ArrowUp: () => hop(state.row - 1, 0), ArrowDown: () => hop(state.row + 1, 0),
    '+': () => zoom(0.5, middle()), '=': () => zoom(0.5, middle()),
    '-': () => zoom(2, middle()), 0: whole, Home: whole, b: busiest,
    ',': () => hop(state.row, -0.01), '.': () => hop(state.row, 0.01),
  };
  canvas.addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  const timeOf = (e) => state.from + e.offsetX / width() * (state.to - state.from);
  canvas.addEventListener('wheel', (e) => {
    // Without a key the page scrolls, as everywhere.
    if (!e.ctrlKey && !e.shiftKey) return;
    e.preventDefault();
    zoom((e.deltaY || e.deltaX) > 0 ? 1.4 : 1 / 1.4, timeOf(e));
  }, { passive: false });
  let drag = null;
  canvas.addEventListener('pointerdown', (e) => { drag = { x: e.clientX, ...state }; });
  window.addEventListener('pointerup', () => { drag = null; });
  canvas.addEventListener('pointermove', (e) => {
    if (drag) {
      const by = (drag.x - e.clientX) / width() * (drag.to - drag.from);
      show(drag.from + by, drag.to + by);
    }
    point(Math.floor((e.offsetY - SCALE) / LANE), timeOf(e));
  });
  canvas.addEventListener('dblclick', (e) => zoom(0.25, timeOf(e)));

  const button = (text, title, act) => {
    const b = el('button', { type: 'button', text, title, 'aria-label': title });
    b.addEventListener('click', act);
    return b;
  };
  const find = el('input', { type: 'search', id: 'find', placeholder: 'find a thread',
    'aria-label': 'find a thread by name or number' });
  find.addEventListener('input', () => {
    choice.text = find.value.trim().toLowerCase();
    choose();
  });
  const fold = kernel.length ? el('button', { type: 'button', id: 'kernel-threads',
    'aria-pressed': 'false', text: count(kernel.length, 'kernel thread', 'kernel threads') })
    : null;
  fold?.addEventListener('click', () => {
    choice.kernel = !choice.kernel;
    fold.setAttribute('aria-pressed', choice.kernel);
    choose();
  });
  const bar = el('div', { class: 'buttons' }, find,
    button('−', 'zoom out', () => zoom(2, middle())), button('+', 'zoom in',
      () => zoom(0.5, middle())),
    button('◀', 'earlier', () => pan(-0.5)), button('▶', 'later', () => pan(0.5)),
    button('whole', 'show the whole trace', whole),
    button(`busiest ${duration(end - begin)}`, 'show every switch of the busiest part', busiest),
    fold);
  const used = new Set(all.flatMap((r) => [...r.pieces, ...r.spans].map((p) => p.what)));
  used.delete(0);
  const missing = [
    t.cpus_left_out && `${count(t.cpus_left_out, 'CPU', 'CPUs')} that were less busy`,
    t.threads_left_out && `${count(t.threads_left_out, 'thread', 'threads')} that ran less`,
  ].filter(Boolean);
  const part = el('div', {}, el('h3', { text: 'CPUs and the busiest threads' }), bar,
    el('div', { class: 'lanes' }, labels, canvas), say,
    legend(t.doings.map((d, i) => [d.id, d.title, i]).filter((d) => used.has(d[2]))),
    el('p', { id: 'lanes-keys', class: 'dim', text: 'In pale parts the state shown took most of ' +
      `the time, but not all of it. For the busiest ${duration(end - begin)} (marked on the ` +
      `scale) this page has each of the ${digits(t.window_switches, 0)} intervals on a CPU; ` +
      `elsewhere the resolution is ${duration(t.pixel_ns)}. Keys: ← → move, + − zoom, 0 all, ` +
      'b busiest, ↑ ↓ , . cursor. Drag moves, double-click or Ctrl + wheel zooms. In the ' +
      'close-up, arrows point to the thread under the cursor from the threads that ended its ' +
      'sleeps.' }),
    missing.length ? el('p', { class: 'dim', text: `Not shown: ${missing.join(', ')}.` }) : null);
  new ResizeObserver(render).observe(canvas.parentNode ?? canvas);
  window.addEventListener('themechange', () => { theme(); render(); });
  theme();
  choose();
  return { part, show };
}

function timeline() {
  const t = DATA.timeline;
  if (!t || t.wall_ns === 0) return null;
  const { part, show } = lanes(t);
  // Lanes of waiting look like trouble, whatever the verdict.
  const calm = REPORT.verdict?.class === 'healthy' ? el('p', { class: 'dim',
    text: 'There is no bottleneck: the threads wait for work, or their waits cost no CPU time.' })
    : null;
  return section('timeline', 'What happened when', calm,
    strip(REPORT.phases, t, show), concurrency(t, t.cpus.length + t.cpus_left_out), part);
}
