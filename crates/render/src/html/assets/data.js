'use strict';
// What the page shows, and the small tools all parts of it use. Names in it come from a trace and
// may hold anything: they enter the document through el() and draw(), as text.

const DATA = JSON.parse(document.getElementById('data').textContent);
const REPORT = DATA.report;
const SVG = 'http://www.w3.org/2000/svg';

/** An element; `attributes` may have `text`, and anything that setAttribute takes. */
function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for pictures. */
function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') node.textContent = value;
    else if (key === 'on') Object.entries(value).forEach(([e, f]) => node.addEventListener(e, f));
    else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(key, value === true ? '' : value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

/** Control characters and those that turn the direction of text, shown instead of obeyed. */
function clean(text, longest = 120) {
  const shown = String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
  const letters = Array.from(shown.slice(0, 2 * longest));
  return letters.length > longest ? letters.slice(0, longest - 1).join('') + '…' : shown;
}

/** Names have a direction of their own, which must not turn the text around them. */
function name(text, longest) {
  return el('bdi', { text: clean(text, longest) });
}

const digits = (x, n) => x.toLocaleString('en-US', { maximumFractionDigits: n });

/** A duration in the unit that suits it. */
function duration(ns) {
  if (ns === null || ns === undefined) return 'n/a';
  const [scale, unit] = ns >= 1e9 ? [1e9, 's'] : ns >= 1e6 ? [1e6, 'ms']
    : ns >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  const x = ns / scale;
  return digits(x, x >= 100 ? 0 : x >= 10 ? 1 : 2) + ' ' + unit;
}

function percent(x) {
  return x === null || x === undefined ? 'n/a' : digits(x, Math.abs(x) < 10 ? 1 : 0) + ' %';
}

/** `one` or `many` of `n`. */
function count(n, one, many) {
  return digits(n, 0) + ' ' + (n === 1 ? one : many);
}

/** `idle/thread-sync` as a class of colours. */
function colour(path) {
  const parts = path.split('/');
  const known = {
    user: 'running', application: 'running', kernel: 'kernel', kthreads: 'kernel-thread',
    irq: 'irq', softirq: 'irq', spin: 'kernel-lock', 'thread-sync': 'thread-sync',
    'kernel-services': 'kernel-service', 'kernel-locks': 'kernel-lock', 'lock-spin': 'kernel-lock',
    'lock-wait': 'kernel-lock', 'one-server': 'thread-sync', io: 'io', throttled: 'ready',
    scheduler: 'ready', serial: 'outside', order: 'kernel-service', 'no-work': 'idle',
    unaccounted: 'unknown', busy: 'running', idle: 'idle', stalled: 'io', 'mp-overhead': 'irq',
  };
  for (const part of parts.reverse()) if (known[part]) return known[part];
  return 'unknown';
}

/** The colour of a class as the theme in force has it. */
function paint(id) {
  return getComputedStyle(document.documentElement).getPropertyValue('--c-' + id).trim();
}

/** A part of the page with a heading, and where to hang what belongs to it. */
function section(id, title, ...children) {
  return el('section', { id, 'aria-labelledby': id + '-h' },
    el('h2', { id: id + '-h', text: title }), ...children);
}

/** Command lines, each with a button that copies it. */
function command(line) {
  const say = el('button', { type: 'button', class: 'copy', text: 'copy',
    'aria-label': 'copy the command' });
  say.addEventListener('click', () => {
    const done = () => { say.textContent = 'copied'; };
    if (navigator.clipboard) navigator.clipboard.writeText(line).then(done, () => {});
  });
  return el('div', { class: 'command' }, el('code', { text: clean(line, 2000) }), say);
}

/** A legend of classes of colours. */
function legend(entries) {
  return el('ul', { class: 'legend' }, entries.map(([id, title]) =>
    el('li', {}, el('span', { class: 'swatch k-' + id, 'aria-hidden': 'true' }), title)));
}
