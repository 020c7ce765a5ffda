// Markdown for model output. It knows paragraphs, headings, quotes, lists, tables, code, emphasis and links, and builds only
// elements of this list. Everything else, such as HTML, stays text. A formula in LaTeX stays as it is, with its marks.

import {copyText, element, icon} from './elements.js';
import {highlight} from './highlight.js';
import {t} from './language.js';

const MAX_DEPTH = 6;            // of quotes, lists and emphasis
const MAX_INLINE = 20000;       // characters of a block in which emphasis and links are looked for
const MAX_TABLE_RULE = 2000;    // characters of the line between head and body
const MAX_LABEL = 500;          // characters of a link's label
const MAX_FORMULA = 20;         // lines of a formula in a text
const MAX_DISPLAYED = 100;      // lines of a displayed formula
// None of these needs more than linear time on lines that end in many spaces or marks.
const FENCE = /^ {0,3}(`{3,}|~{3,}(?!~))([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
const TASK = /^\[([ xX])\] +(?=\S)/;
const DISPLAYED = /^\s*(?:\$\$|\\\[|\\begin\{)/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*(?:\|\s*)?$/;
const BLANK = /^\s*$/;

// Shows the text in the container. Blocks that have not changed since the last call keep their elements, so that a stream
// neither flickers nor loses a selection.
export function showMarkdown(container, text) {
  const blocks = parseBlocks(text.replace(/\r\n?/g, '\n').split('\n'), 0, []);
  const shown = container.shown_blocks ?? [];
  let same = 0;
  while (same < shown.length && same < blocks.length && shown[same].source === blocks[same].source) ++same;
  // Code that grows stays in its element, which may have the focus and be scrolled, unless it is in a list or a quote.
  if (shown[same]?.code && blocks[same]?.code?.language === shown[same].code.language) {
    blocks[same].node = shown[same].node;
    showCode(blocks[same].node, blocks[same].code);
    ++same;
  }
  for (const block of shown.slice(same)) block.node.remove();
  for (const block of blocks.slice(same)) container.append(block.node = block.build());
  container.shown_blocks = blocks.map((block, i) => block.node ? block : shown[i]);
}

// Returns an address that may be opened, or null: only http and https.
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return ['http:', 'https:'].includes(url.protocol) && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

// Each block has the lines it came from and a function that builds its element. `outline` has the marks of the headings that
// contain the present place.
function parseBlocks(lines, depth, outline) {
  const blocks = [];
  for (let start = 0; start < lines.length;) {
    if (BLANK.test(lines[start])) {
      ++start;
      continue;
    }
    const {end, build, code} = parseBlock(lines, start, depth, outline);
    blocks.push({source: lines.slice(start, end).join('\n'), build, code});
    start = end;
  }
  return blocks;
}

function parseBlock(lines, start, depth, outline) {
  const line = lines[start];
  const fence = FENCE.exec(line);
  if (fence) return codeBlock(lines, start, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const tag = `h${headingLevel(heading[1].length, depth, outline)}`;
    const text = heading[2].trim().replace(/(?:^| )#+$/, '');
    return {end: start + 1, build: () => element(tag, {dir: 'auto'}, ...inline(text))};
  }
  if (RULE.test(line)) return {end: start + 1, build: () => element('hr')};
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quote(lines, start, depth, [...outline]);
  if (depth < MAX_DEPTH && ITEM.test(line)) return list(lines, start, depth, [...outline]);
  if (startsTable(lines, start)) return table(lines, start);
  return paragraph(lines, start, depth);
}

// The page's own headings are h1 and h2. Levels follow without gaps, whatever the number of marks; in quotes and lists all are one
// below that of the text.
function headingLevel(marks, depth, outline) {
  if (depth > 0) return Math.min(outline.length + 3, 6);
  while (outline.at(-1) >= marks) outline.pop();
  outline.push(marks);
  return Math.min(outline.length + 2, 6);
}

function children(lines, depth, outline) {
  return parseBlocks(lines, depth + 1, outline).map((block) => block.build());
}

function codeBlock(lines, start, [, mark, info]) {
  let end = start + 1;
  const closes = (line) => {
    const found = FENCE.exec(line);
    return found && found[1][0] === mark[0] && found[1].length >= mark.length && found[2].trim() === '';
  };
  while (end < lines.length && !closes(lines[end])) ++end;
  const code = {text: lines.slice(start + 1, end).join('\n'), language: info.trim().split(/\s/)[0]};
  return {end: Math.min(end + 1, lines.length), code, build: () => codeElement(code)};
}

function codeElement(code) {
  const label = element('span', {}, t('copy'));
  const copy = element('button', {
    type: 'button', class: 'link copy-code', onclick: async () => {
      label.textContent = t(await copyText(figure.querySelector('code').textContent) ? 'copied' : 'copyFailed');
      setTimeout(() => { label.textContent = t('copy'); }, 2000);
    },
  }, icon('copy'), label);
  const figure = element('figure', {class: 'code'},
    element('figcaption', {}, element('span', {}, code.language || t('code')), copy),
    element('pre', {tabindex: '0', dir: 'ltr'}, element('code')));
  showCode(figure, code);
  return figure;
}

function showCode(figure, {text, language}) {
  figure.querySelector('code').replaceChildren(...highlight(text, language));
}

function quote(lines, start, depth, outline) {
  let end = start;
  while (end < lines.length && QUOTE.test(lines[end])) ++end;
  const inner = lines.slice(start, end).map((line) => line.replace(QUOTE, ''));
  return {end, build: () => element('blockquote', {}, ...children(inner, depth, outline))};
}

const isOrdered = (item) => /\d/.test(item[2]);

function list(lines, start, depth, outline) {
  const first = ITEM.exec(lines[start]);
  const items = [];
  let end = start, width = 0;
  for (; end < lines.length; ++end) {
    const line = lines[end];
    const item = ITEM.exec(line);
    const indent = line.search(/\S|$/);
    if (item && indent <= first[1].length + 1 && isOrdered(item) === isOrdered(first) && !RULE.test(line)) {
      width = item[0].length;
      items.push([line.slice(width)]);
    } else if (BLANK.test(line)) {
      let next = end + 1;
      while (next < lines.length && BLANK.test(lines[next])) ++next;
      if (next === lines.length || !continuesList(lines[next], first)) break;
      for (; end < next; ++end) items.at(-1).push('');
      --end;
    } else if (indent > first[1].length || (lines[end - 1].trim() !== '' && !startsBlock(line))) {
      items.at(-1).push(line.slice(Math.min(indent, width)));
    } else {
      break;
    }
  }
  return {end, build: () => listElement(first, items, depth, outline)};
}

// Whether the line after blank ones is an item of the list or indented.
function continuesList(next, first) {
  const item = ITEM.exec(next);
  return next.search(/\S/) > first[1].length || (item && isOrdered(item) === isOrdered(first) && !RULE.test(next));
}

function listElement(first, items, depth, outline) {
  const content = items.map((lines) => itemElement(lines, depth, outline));
  if (!isOrdered(first)) return element('ul', {}, ...content);
  return element('ol', {start: String(Number.parseInt(first[2], 10))}, ...content);
}

// An item that starts with "[ ]" or "[x]" has a check box, whose name is the text of the item.
function itemElement(lines, depth, outline) {
  const task = TASK.exec(lines[0]);
  if (!task) return element('li', {}, ...children(lines, depth, outline));
  const content = children([lines[0].slice(task[0].length), ...lines.slice(1)], depth, outline);
  const box = element('input', {
    type: 'checkbox', disabled: true, checked: task[1] !== ' ', 'aria-label': content[0].textContent,
  });
  return element('li', {class: 'task'}, box, ...content);
}

// A "|" of code or of a formula divides no cells.
function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  const {shape} = withVerbatim(inner, {closed: true, cell: true});
  const ends = [...shape.matchAll(/\|/g)].map((found) => found.index);
  return [...ends, inner.length].map((end, i) => inner.slice(i > 0 ? ends[i - 1] + 1 : 0, end).trim()
    .replace(/`[^`]*`/g, (code) => code.replaceAll('\\|', '|')));
}

function alignment(rule) {
  if (!rule.endsWith(':')) return 'start';
  return rule.startsWith(':') ? 'center' : 'end';
}

function startsTable(lines, start) {
  return lines[start].includes('|') && start + 1 < lines.length && lines[start + 1].includes('-') &&
    lines[start + 1].length <= MAX_TABLE_RULE && TABLE_RULE.test(lines[start + 1]) && cells(lines[start]).length === cells(lines[start + 1]).length;
}

function table(lines, start) {
  let end = start + 2;
  while (end < lines.length && lines[end].includes('|') && !BLANK.test(lines[end])) ++end;
  const head = cells(lines[start]);
  const align = cells(lines[start + 1]).map(alignment);
  // One cell in place of all that a row lacks: a few short rows below a long head must not become millions of elements.
  const row = (tag, texts) => element('tr', {},
    ...texts.slice(0, head.length).map((text, i) => element(tag, {class: `align-${align[i]}`, dir: 'auto'}, ...inline(text, {cell: true}))),
    texts.length < head.length && element(tag, {colspan: String(head.length - texts.length)}));
  return {
    end,
    build: () => element('div', {class: 'table', tabindex: '0'}, element('table', {},
      element('thead', {}, row('th', head)),
      element('tbody', {}, ...lines.slice(start + 2, end).map((line) => row('td', cells(line)))))),
  };
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line) || DISPLAYED.test(line);
}

// A line break in a paragraph stays one: models end the lines of a poem so. The lines of a formula stay as they are.
function paragraph(lines, start, depth) {
  const kept = [];
  let end = start;
  do {
    const next = formulaEnd(lines, end) + 1;
    kept.push(lines.slice(end, next).join('\n').trim());
    end = next;
  } while (end < lines.length && !BLANK.test(lines[end]) && !(depth < MAX_DEPTH && startsBlock(lines[end])) &&
           !startsTable(lines, end));
  const text = kept.join('\n');
  return {end, build: () => element('p', {dir: 'auto'}, ...inline(text))};
}

// Returns the last line of the formulas that a line starts; the line itself if it ends them. A displayed formula may have blank
// lines; without an end, as in an answer that is being written, it goes up to the first of them.
function formulaEnd(lines, start) {
  const is_displayed = DISPLAYED.test(lines[start]);
  let last = start;
  for (let rest = lines[start];;) {
    const close = withVerbatim(rest).open;
    if (!close) return last;
    let end = last + 1;
    const most = Math.min(lines.length, start + (is_displayed ? MAX_DISPLAYED : MAX_FORMULA));
    while (end < most && !lines[end].includes(close) && (is_displayed || !BLANK.test(lines[end]))) ++end;
    if (!lines[end]?.includes(close)) return is_displayed ? lastBeforeBlank(lines, last, most) : last;
    rest = lines[end].slice(lines[end].indexOf(close) + close.length);
    last = end;
  }
}

function lastBeforeBlank(lines, last, most) {
  while (last + 1 < most && !BLANK.test(lines[last + 1])) ++last;
  return last;
}

// Only marks that would do something have an escape; some do at the start of a line alone. All else is LaTeX without delimiters
// and stays: "\{", "\,", "\|", the "\\" between rows, and the marks of formulas.
const ESCAPED = /\\(?:[*_`~$]|(?<=^\\)(?:>|#{1,6}\s|[-+](?:[\s-]|$))|(?<=^\d{1,9}\\)\.(?:\s|$))/my;
const HIDDEN = '\ufffc';
const BARE_ADDRESS = /^https?:\/\/[^\s<>"'`，。；：！？、（）《》“”]+/;
const MARKS = [['**', 'strong'], ['__', 'strong'], ['~~', 'del'], ['*', 'em'], ['_', 'em']];

// Returns the text with what has no marks in it: code, formulas and escaped characters. `verbatim` has {build or text, length}
// for the place where each starts; `shape` is the text with these characters hidden. A formula without an end takes the rest of
// the text, and `open` is the mark that would end it, unless only `closed` ones count. The text may be of the cells of a table.
function withVerbatim(text, {closed = false, cell = false} = {}) {
  const verbatim = new Map();
  const absent = new Set();
  const starts = /[\\`$]/g;
  let shape = '', open = null;
  for (let match; text.length <= MAX_INLINE && (match = starts.exec(text));) {
    const {index} = match;
    const found = verbatimAt(text, index, {closed, cell}, absent);
    starts.lastIndex = index + found.length;
    if (!found.build && found.text === undefined) continue;
    shape += text.slice(shape.length, index) + HIDDEN.repeat(found.length);
    verbatim.set(index, found);
    open ??= found.open;
  }
  return {text, shape: shape + text.slice(shape.length), verbatim, open, at: 0};
}

// Returns {build or text, length} of what starts here, or {length} of ordinary characters.
function verbatimAt(text, i, {closed, cell}, absent) {
  if (text[i] === '`') return codeSpan(text, i, absent);
  const close = {'\\(': '\\)', '\\[': '\\]', '$$': '$$'}[text.slice(i, i + 2)] ?? environmentEnd(text, i);
  if (close) {
    const end = find(text, close, i + 2, absent);
    if (end >= 0) return formula(text, i, end + close.length);
    return closed ? {length: 2} : {...formula(text, i, text.length), open: close};
  }
  if (text[i] === '$') return dollarFormula(text, i, absent);
  return escapedAt(text, i, cell);
}

function escapedAt(text, i, cell) {
  const mark = text[i + 1];
  ESCAPED.lastIndex = i;
  if (!ESCAPED.test(text) && !(cell && mark === '|')) return {length: mark === '\\' ? 2 : 1};
  // Within a word "_" does nothing, so that "\_" is LaTeX, as in \text{a\_b}.
  return {text: mark === '_' && inWord(text[i - 1]) && inWord(text[i + 2]) ? '\\_' : mark, length: 2};
}

// "\begin{name}" gives "\end{name}".
function environmentEnd(text, i) {
  const [, name] = /^\\begin\{([a-zA-Z]{1,20}\*?)\}/.exec(text.slice(i, i + 30)) ?? [];
  return name && `\\end{${name}}`;
}

const formula = (text, start, end) =>
  ({build: () => element('span', {class: 'formula'}, text.slice(start, end)), length: end - start});

// The next "$" ends the formula. "$5 and $6" has none: a formula has spaces within both marks or within none, and no digit after
// it.
function dollarFormula(text, i, absent) {
  let end = find(text, '$', i + 2, absent);
  while (end > 0 && isEscaped(text, end)) end = find(text, '$', end + 1, absent);
  if (end < 0) return {length: 1};
  const content = text.slice(i + 1, end);
  const is_formula = /^\s/.test(content) === /\s$/.test(content) && /\S/.test(content) && !content.includes('`');
  return is_formula && !/[\d$]/.test(text[end + 1] ?? '') ? formula(text, i, end + 1) : {length: 1};
}

function isEscaped(text, at) {
  let start = at;
  while (text[start - 1] === '\\') --start;
  return (at - start) % 2 === 1;
}

// Returns the nodes of a text: strings, and elements for code, emphasis and links.
function inline(text, place) {
  return text.length > MAX_INLINE ? [text] : inlineNodes(withVerbatim(text, place), 0);
}

function part(source, start, end) {
  const {text, shape, verbatim, at} = source;
  return {text: text.slice(start, end), shape: shape.slice(start, end), verbatim, at: at + start};
}

function inlineNodes(source, depth) {
  const {text} = source;
  if (depth >= MAX_DEPTH) return [text];
  const nodes = [];
  const absent = new Set();  // marks that do not occur from here on, so that no search is repeated
  let plain = '';
  const emit = (node) => {
    if (plain) nodes.push(plain);
    plain = '';
    nodes.push(node);
  };
  for (let i = 0; i < text.length;) {
    const found = inlineAt(source, i, depth, absent);
    if (found?.node) emit(found.node);
    else plain += found ? found.text : text[i];
    i += found ? found.length : 1;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

// Returns what starts at i, {node or text, length}, or null for an ordinary character.
function inlineAt(source, i, depth, absent) {
  switch (source.shape[i]) {
    case HIDDEN: return verbatimNode(source.verbatim.get(source.at + i));
    case '[': return link(source, i, depth, absent);
    case 'h': return bareAddress(source.text, i);
    case '*': case '_': case '~': return emphasis(source, i, depth, absent);
    default: return null;
  }
}

const verbatimNode = (found) => found?.build ? {node: found.build(), length: found.length} : found;

function find(text, mark, from, absent) {
  if (absent.has(mark)) return -1;
  const at = text.indexOf(mark, from);
  if (at < 0) absent.add(mark);
  return at;
}

function codeSpan(text, i, absent) {
  let run = 1;
  while (text[i + run] === '`') ++run;
  const mark = '`'.repeat(run);
  const end = find(text, mark, i + run, absent);
  if (end < 0) return {length: run};
  return {build: () => element('code', {}, text.slice(i + run, end).trim() || ' '), length: end + run - i};
}

const inWord = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);

function emphasis(source, i, depth, absent) {
  const text = source.shape;
  const [mark, tag] = MARKS.find(([start]) => text.startsWith(start, i)) ?? [];
  if (!mark) return null;
  const opens = /\S/.test(text[i + mark.length] ?? '') && !(mark[0] === '_' && inWord(text[i - 1]));
  if (!opens) return {text: mark, length: mark.length};
  for (let end = find(text, mark, i + mark.length + 1, absent), tries = 0; end > 0 && tries < 20; ++tries) {
    const next = text[end + mark.length];
    const closes = /\S/.test(text[end - 1]) && !(mark[0] === '_' && inWord(next)) && next !== mark[0];
    if (closes) {
      const content = inlineNodes(part(source, i + mark.length, end), depth + 1);
      return {node: element(tag, {}, ...content), length: end + mark.length - i};
    }
    end = find(text, mark, end + (next === mark ? 2 : 1), absent);  // "*" does not close at "**"
  }
  return {text: mark, length: mark.length};
}

function link({text, shape}, i, depth, absent) {
  const middle = find(shape, '](', i + 1, absent);
  if (middle < 0 || middle - i > MAX_LABEL || /[[\]\n]/.test(shape.slice(i + 1, middle))) return null;
  const end = find(shape, ')', middle + 2, absent);
  if (end < 0) return null;
  const address = safeAddress(text.slice(middle + 2, end).trim().split(/\s/)[0]);
  if (!address) return null;
  return {node: linkElement(address, [text.slice(i + 1, middle)]), length: end + 1 - i};
}

function withoutLastMarks(text) {
  let end = text.length;
  while ('.,;:!?)]}*_'.includes(text[end - 1])) --end;
  return text.slice(0, end);
}

function bareAddress(text, i) {
  const found = withoutLastMarks(BARE_ADDRESS.exec(text.slice(i, i + 2000))?.[0] ?? '');
  const address = found && safeAddress(found);
  return address ? {node: linkElement(address, [found]), length: found.length} : null;
}

// The address was written by a model: it is shown and must be confirmed before the browser opens it.
function linkElement(address, label) {
  const confirmFirst = (event) => {
    if (!confirm(t('openLink', address))) event.preventDefault();
  };
  return element('a', {
    href: address, target: '_blank', rel: 'noopener noreferrer nofollow', title: address,
    onclick: confirmFirst, onauxclick: confirmFirst,
  }, ...label);
}
