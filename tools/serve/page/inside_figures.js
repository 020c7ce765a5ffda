// The figures of the view "Inside", in SVG, and how they are saved.

import {download, element, icon, svg} from './elements.js';
import {t} from './language.js';

const CELL = 10;      // of a map, in units of its drawing
const LEVELS = 50;    // of weights that look different: cells of one level are one path, because a page draws few elements fast
const BAR = {row: 20, label: 130, width: 160, value: 70};

// Returns a figure with its caption and a button that saves its drawing under a name.
export function figure(caption, name, drawing, ...others) {
  const save = element('button', {
    type: 'button', class: 'link', 'aria-label': t('saveFigure', name), title: t('saveFigure', name),
    onclick: () => download(`${name}.svg`, standalone(drawing), 'image/svg+xml'),
  }, icon('download'), 'SVG');
  return element('figure', {class: 'figure'}, element('figcaption', {class: 'row'}, element('span', {}, caption),
    element('span', {class: 'space'}), ...others, save), drawing);
}

// The text of a drawing with the colours that it has now, which the page's style sheet gives, without what shows the pointer.
export function standalone(drawing) {
  const copy = drawing.cloneNode(true);
  const drawn = [drawing, ...drawing.querySelectorAll('*')];
  [copy, ...copy.querySelectorAll('*')].forEach((node, i) => {
    const style = getComputedStyle(drawn[i]);
    for (const name of ['fill', 'stroke', 'font-size', 'font-family']) node.setAttribute(name, style.getPropertyValue(name));
    for (const name of ['class', 'tabindex', 'role', 'aria-label']) node.removeAttribute(name);
  });
  copy.querySelectorAll('[data-pointer]').forEach((node) => node.remove());
  return new XMLSerializer().serializeToString(copy);
}

// Rows of {label, value, text}: bars to the right of 0, or to its left if they are negative.
export function bars(label, rows) {
  const largest = Math.max(...rows.map(({value}) => Math.abs(value)), 1e-9);
  const has_negative = rows.some(({value}) => value < 0);
  const zero = BAR.label + (has_negative ? BAR.width / 2 : 0);
  const scale = (has_negative ? BAR.width / 2 : BAR.width) / largest;
  const height = rows.length * BAR.row;
  const drawing = svg('svg', {
    class: 'bars', role: 'img', 'aria-label': `${label}. ${rows.map((row) => `${row.label}: ${row.text}`).join('; ')}`,
    viewBox: `0 0 ${BAR.label + BAR.width + BAR.value} ${height}`,
  });
  rows.forEach((row, i) => {
    const length = Math.abs(row.value) * scale;
    const middle = (i + 0.7) * BAR.row;
    drawing.append(
      svg('text', {x: 0, y: middle, class: 'bar-label'}, row.label),
      svg('rect', {class: row.value < 0 ? 'bar-negative' : 'bar-positive', x: row.value < 0 ? zero - length : zero,
        y: i * BAR.row + 4, width: length, height: BAR.row - 8}),
      svg('text', {x: BAR.label + BAR.width + 6, y: middle, class: 'bar-value'}, row.text));
  });
  drawing.append(svg('line', {class: 'axis', x1: zero, x2: zero, y1: 0, y2: height}));
  return drawing;
}

// The map of a head: a row for each token, a column for each token that it looks at. `onlook(row, column)` is called for the
// cell that the pointer, or the arrow keys, are at. The strength of a cell is the root of its weight: small weights are seen, too.
export function attentionMap(rows, chosen, label, onlook) {
  const size = rows.length * CELL;
  const drawing = svg('svg', {class: 'map', role: 'img', tabindex: '0', 'aria-label': label, viewBox: `0 0 ${size} ${size}`},
    svg('rect', {class: 'map-ground', width: size, height: size}),
    svg('rect', {class: 'map-row', y: chosen * CELL, width: (chosen + 1) * CELL, height: CELL}));
  const levels = Array.from({length: LEVELS + 1}, () => []);
  rows.forEach((weights, row) => weights.forEach((weight, column) => {
    levels[Math.round(Math.sqrt(weight) * LEVELS)].push(`M${column * CELL} ${row * CELL}h${CELL}v${CELL}h${-CELL}z`);
  }));
  for (let level = 1; level <= LEVELS; ++level) {
    if (levels[level].length > 0) drawing.append(svg('path', {class: 'map-cell', d: levels[level].join(''), 'fill-opacity': level / LEVELS}));
  }
  const frame = svg('rect', {class: 'map-frame', width: CELL, height: CELL, visibility: 'hidden', 'data-pointer': ''});
  drawing.append(frame);
  let at = [chosen, 0];
  const look = (row, column) => {
    at = [Math.min(Math.max(row, 0), rows.length - 1), 0];
    at[1] = Math.min(Math.max(column, 0), at[0]);
    frame.setAttribute('visibility', 'visible');
    frame.setAttribute('x', at[1] * CELL);
    frame.setAttribute('y', at[0] * CELL);
    onlook(...at);
  };
  const lookAtPointer = (event) => {
    const box = drawing.getBoundingClientRect();
    look(Math.floor((event.clientY - box.top) / box.height * rows.length), Math.floor((event.clientX - box.left) / box.width * rows.length));
  };
  drawing.addEventListener('pointermove', lookAtPointer);
  drawing.addEventListener('pointerdown', lookAtPointer);  // a finger does not move before
  drawing.addEventListener('focus', () => look(...at));
  drawing.addEventListener('keydown', (event) => {
    const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (!step) return;
    event.preventDefault();
    look(at[0] + step[0], at[1] + step[1]);
  });
  return drawing;
}
