// Drives a page of holdup in headless Chromium and prints what is wrong with it, a line each.
//
//   node page.mjs FOLDER PAGE.html REPORT.json
//
// FOLDER has node_modules with puppeteer-core and axe-core. REPORT.json is what --format json says
// of the same trace. Exit code 1 if anything is wrong.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [folder, file, reportFile] = process.argv.slice(2);
const require = createRequire(folder + '/page.mjs');
const { default: puppeteer } = await import(pathToFileURL(require.resolve('puppeteer-core')).href);
const axe = readFileSync(require.resolve('axe-core'), 'utf8');
const report = JSON.parse(readFileSync(reportFile, 'utf8'));
const url = pathToFileURL(file).href;

/** The browser, which puppeteer wants by its path. */
const chromium = process.env.PATH.split(':').map((f) => f + '/chromium').find(existsSync);

/** Opening a page may take so long. */
const OPENS_MS = 2000;
/** CPU time that took, each time: wall time is longer where others work on the machine too. */
const opened = [];
const wrong = [];
const must = (holds, what) => { if (!holds) wrong.push(what); };
const same = (a, b, what) => must(Object.is(a, b), `${what}: ${a}, not ${b}`);

const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

/** A fresh page that complains of errors and requests. */
async function open(width, scheme) {
  const page = await browser.newPage();
  const where = `${width} px ${scheme}`;
  page.on('console', (m) => wrong.push(`${where}: console ${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => wrong.push(`${where}: error: ${e.message}`));
  page.on('dialog', (d) => { wrong.push(`${where}: a dialog: ${d.message()}`); d.dismiss(); });
  page.on('request', (r) => must(r.url() === url, `${where}: asks for ${r.url()}`));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  const session = await page.createCDPSession();
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  await page.goto(url, { waitUntil: 'load' });
  const { metrics } = await session.send('Performance.getMetrics');
  opened.push(1000 * metrics.find((m) => m.name === 'TaskDuration').value);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  must(wide <= width, `${where}: ${wide} px wide`);
  return page;
}

/** Numbers of an attribute by those of another, of all elements that have both. */
const numbers = (page, selector, key, value) => page.$$eval(selector, (all, k, v) =>
  all.map((e) => [e.dataset[k], Number(e.dataset[v])]), key, value);

async function figures(page) {
  same(await page.$eval('.verdict', (e) => e.dataset.class), report.verdict.class, 'verdict');
  const said = await page.$eval('.verdict .summary', (e) => e.textContent);
  must(report.verdict.summary.startsWith(said.slice(0, 40)), `the sentence: ${said}`);
  const nodes = new Map(await numbers(page, '#icicle .node', 'path', 'ns'));
  for (const { path, ns } of report.ledger.nodes.filter((n) => n.ns > 0)) {
    same(nodes.get(path), ns, `ledger ${path}`);
  }
  same(nodes.get(''), report.ledger.capacity_ns, 'capacity');
  const phases = await page.$$('.phase');
  same(phases.length, (report.phases ?? []).length > 1 ? report.phases.length : 0, 'phases');
  same((await page.$$('#evidence .finding')).length, report.findings.length, 'findings');
  const data = await page.evaluate(() => DATA);
  same(JSON.stringify(data.report), JSON.stringify(report), 'the report in the page');
  const { timeline: t, tables } = data;
  // The lanes say what the tables say, as far as both show a thread.
  const cpus = tables.find((x) => x.name === 'cpus').rows;
  const irq = cpus.reduce((n, c) => n + c.irq_ns + c.softirq_ns, 0);
  const procs = tables.find((x) => x.name === 'procs').rows;
  for (const [tid, ns] of await numbers(page, '.labels div[data-tid]', 'tid', 'runningNs')) {
    const rows = procs.filter((r) => String(r.tid) === tid);
    // What interrupts took of a thread is in its lane, and not in its row.
    must(rows.length === 0 || rows.some((r) => r.combined_ns <= ns && ns <= r.combined_ns + irq),
      `thread ${tid} runs ${ns} ns, the table says ${rows.map((r) => r.combined_ns)}`);
  }
  const busy = cpus.reduce((n, c) => n + c.wall_ns - c.idle_ns - c.unaccounted_ns, 0) / t.wall_ns;
  const drawn = Number(await page.$eval('#concurrency', (e) => e.dataset.busy));
  must(Math.abs(busy - drawn) < 1e-6 * busy + 1e-9,
    `${drawn} busy CPUs drawn, ${busy} in the table`);
  const edges = await page.$$('#graph .edge');
  must(edges.length > 0 || data.graph.edges.length === 0, 'the blocking graph has no edges');
}

/** Sorting by a click, and by a key. */
async function sorting(page) {
  await page.$eval('#table-procs', (d) => { d.open = true; });
  const head = '#table-procs th[data-key="comm"] button';
  const column = () => page.$$eval('#table-procs tbody tr', (rows) =>
    rows.map((r) => r.cells[[...document.querySelectorAll('#table-procs th')]
      .findIndex((h) => h.dataset.key === 'comm')].textContent));
  await page.focus(head);
  await page.keyboard.press('Enter');
  const up = await column();
  const sorted = [...up].sort((a, b) => a.localeCompare(b, 'en'));
  same(up.join(), sorted.join(), 'sorted by name');
  const order = await page.$eval('#table-procs th[data-key="comm"]', (h) => h.ariaSort);
  same(order, 'ascending', 'sort');
  await page.click(head);
  same((await column()).join(), [...up].sort((a, b) => b.localeCompare(a, 'en')).join(),
    'sorted the other way');
}

/** Zooming by keys and buttons, down to switches and back. */
async function zooming(page) {
  const view = () => page.$eval('#lanes', (c) => ({ ...c.dataset }));
  const all = await view();
  await page.focus('#lanes');
  await page.keyboard.press('b');
  for (let i = 0; i < 5; i++) await page.keyboard.press('+');
  const near = await view();
  must(near.to - near.from < all.to - all.from, 'b and + do not zoom');
  same(near.shows, 'switches', 'the close-up');
  await page.keyboard.press('ArrowRight');
  must(Number((await view()).from) > Number(near.from), 'the right arrow does not move');
  await page.keyboard.press('ArrowDown');
  const said = await page.$eval('#lanes-say', (e) => e.textContent);
  must(said.length > 10, 'the cursor says nothing');
  await page.keyboard.press('0');
  same(JSON.stringify(await view()), JSON.stringify({ ...(await view()), from: all.from,
    to: all.to }), 'the whole trace again');
  const bright = () => page.evaluate(() => {
    const c = document.getElementById('lanes');
    const pixels = c.getContext('2d').getImageData(0, 22, c.width, c.height - 22).data;
    return pixels.reduce((n, v, i) => n + (i % 4 === 3 && v > 0 ? 1 : 0), 0);
  });
  must(await bright() > 1000, 'the lanes are empty');
  // The icicle: Enter opens a node, Escape closes it.
  const nodes = await numbers(page, '#icicle .node', 'path', 'ns');
  const least = nodes.reduce((a, b) => b[1] < a[1] ? b : a)[0];
  const node = `#icicle .node[data-path="${least}"]`;
  const width = () => page.$eval(node, (e) => e.getBoundingClientRect().width);
  const before = await width();
  await page.focus(node);
  await page.keyboard.press('Enter');
  must(least === '' || await width() > before || nodes.length < 4, 'Enter opens no node');
  await page.keyboard.press('Escape');
  same(await width(), before, 'Escape closes it');
}

/** Threads are found by name; those of the kernel stay folded; arrows lead to the one chosen. */
async function choosing(page) {
  const lanes = async () => Number(await page.$eval('#lanes', (c) => c.dataset.lanes));
  const t = await page.evaluate(() => DATA.timeline);
  const kernel = t.threads.filter((r) => r.kernel).length;
  const all = t.cpus.length + t.threads.length;
  same(await lanes(), all - kernel, 'lanes without threads of the kernel');
  if (kernel) {
    await page.click('#kernel-threads');
    same(await lanes(), all, 'lanes with threads of the kernel');
    await page.click('#kernel-threads');
  }
  if (t.threads.length === 0) return;
  const wanted = String(t.threads[0].tid);
  await page.type('#find', wanted);
  const labels = await page.$$eval('.labels div', (list) => list.map((d) => d.textContent));
  must(labels.length > 0 && labels.every((l) => l.includes(wanted)), `found: ${labels}`);
  await page.$eval('#find', (e) => { e.value = ''; e.dispatchEvent(new Event('input')); });
  same(await lanes(), all - kernel, 'lanes when nothing is looked for');
  const tids = new Set(t.threads.filter((r) => !r.kernel).map((r) => r.tid));
  const ended = (r) => r.spans.filter((who, i) => i % 5 === 3 && who >= 0 && r.spans[i - 1] !== 1
    && t.people[who].tid !== r.tid && tids.has(t.people[who].tid)).length;
  const woken = t.threads.filter((r) => !r.kernel).reduce((sum, r) => sum + ended(r), 0);
  // The close-up shows a part: where few are woken it may be a part without.
  if (woken < 100) return;
  await page.focus('#lanes');
  await page.keyboard.press('b');
  let most = 0;
  for (let i = 0; i < all - kernel; i++) {
    await page.keyboard.press('ArrowDown');
    most = Math.max(most, Number(await page.$eval('#lanes', (c) => c.dataset.arrows)));
  }
  must(most > 0, 'no arrow leads to a thread that another one woke');
  await page.keyboard.press('0');
}

/** What axe-core finds, text contrast above all. */
async function contrast(page, where) {
  await page.$$eval('details', (all) => all.forEach((d) => { d.open = true; }));
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, {
    runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa'] }));
  for (const v of found.violations) {
    const at = v.nodes.slice(0, 3).map((n) => `${n.target}: ${n.failureSummary}`).join('; ');
    wrong.push(`${where}: ${v.id}: ${at.replace(/\s+/g, ' ')}`);
  }
}

for (const width of [1280, 390]) {
  for (const scheme of ['light', 'dark']) {
    const page = await open(width, scheme);
    if (report.findings) {
      await figures(page);
      await sorting(page);
      await zooming(page);
      await choosing(page);
    }
    await contrast(page, `${width} px ${scheme}`);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await ground();
    await page.click('#theme');
    must(await ground() !== before, `${width} px ${scheme}: the theme does not change`);
    if (width > 1000) await contrast(page, `${width} px ${scheme}, other theme`);
    await page.close();
  }
}
await browser.close();
const fastest = Math.min(...opened);
must(fastest < OPENS_MS, `opening takes ${Math.round(fastest)} ms`);
for (const line of wrong) console.log(line);
process.exit(wrong.length > 0 ? 1 : 0);
