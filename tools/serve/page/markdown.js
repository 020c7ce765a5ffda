// Markdown for model output. It knows paragraphs, headings, quotes, lists, tables, code, emphasis and links, and builds only
// elements of this list. Everything else, such as HTML, stays text.

import {copyText, element, icon} from './elements.js';
import {t} from './language.js';

const MAX_DEPTH = 6;            // of quotes, lists and emphasis
const MAX_INLINE = 20000;       // characters of a block in which emphasis and links are looked for
const MAX_TABLE_RULE = 2000;    // characters of the line between head and body
const MAX_LABEL = 500;          // characters of a link's label
// None of these needs more than linear time on lines that end in many spaces or marks.
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})\s(.*)$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: +|$)/;
const TABLE_RULE = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const BLANK = /^\s*$/;

// Shows the text in the container. Blocks that have not changed since the last call keep their elements, so that a stream
// neither flickers nor loses a selection.
export function showMarkdown(container, text) {
  const blocks = parseBlocks(text.replace(/\r\n?/g, '\n').split('\n'), 0);
  const shown = container.shown_blocks ?? [];
  let same = 0;
  while (same < shown.length && same < blocks.length && shown[same].source === blocks[same].source) ++same;
  for (const block of shown.slice(same)) block.node.remove();
  for (const block of blocks.slice(same)) container.append(block.node = block.build());
  container.shown_blocks = [...shown.slice(0, same), ...blocks.slice(same)];
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

// Each block has the lines it came from and a function that builds its element.
function parseBlocks(lines, depth) {
  const blocks = [];
  for (let start = 0; start < lines.length;) {
    if (BLANK.test(lines[start])) {
      ++start;
      continue;
    }
    const {end, build} = parseBlock(lines, start, depth);
    blocks.push({source: lines.slice(start, end).join('\n'), build});
    start = end;
  }
  return blocks;
}

function parseBlock(lines, start, depth) {
  const line = lines[start];
  const fence = FENCE.exec(line);
  if (fence) return codeBlock(lines, start, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    // The page's own headings are h1 and h2.
    const tag = `h${Math.min(heading[1].length + 2, 6)}`;
    const text = heading[2].trim().replace(/(?:^| )#+$/, '');
    return {end: start + 1, build: () => element(tag, {dir: 'auto'}, ...inline(text))};
  }
  if (RULE.test(line)) return {end: start + 1, build: () => element('hr')};
  if (depth < MAX_DEPTH && QUOTE.test(line)) return quote(lines, start, depth);
  if (depth < MAX_DEPTH && ITEM.test(line)) return list(lines, start, depth);
  if (startsTable(lines, start)) return table(lines, start);
  return paragraph(lines, start, depth);
}

function children(lines, depth) {
  return parseBlocks(lines, depth + 1).map((block) => block.build());
}

function codeBlock(lines, start, [, mark, info]) {
  let end = start + 1;
  const closes = (line) => {
    const found = FENCE.exec(line);
    return found && found[1][0] === mark[0] && found[1].length >= mark.length && found[2].trim() === '';
  };
  while (end < lines.length && !closes(lines[end])) ++end;
  const code = lines.slice(start + 1, end).join('\n');
  return {end: Math.min(end + 1, lines.length), build: () => codeElement(code, info.trim().split(/\s/)[0])};
}

function codeElement(code, language) {
  const label = element('span', {}, t('copy'));
  const copy = element('button', {
    type: 'button', class: 'link copy-code', onclick: async () => {
      label.textContent = t(await copyText(code) ? 'copied' : 'copyFailed');
      setTimeout(() => { label.textContent = t('copy'); }, 2000);
    },
  }, icon('copy'), label);
  return element('figure', {class: 'code'},
    element('figcaption', {}, element('span', {}, language || t('code')), copy),
    element('pre', {tabindex: '0', dir: 'ltr'}, element('code', {}, code)));
}

function quote(lines, start, depth) {
  let end = start;
  while (end < lines.length && QUOTE.test(lines[end])) ++end;
  const inner = lines.slice(start, end).map((line) => line.replace(QUOTE, ''));
  return {end, build: () => element('blockquote', {}, ...children(inner, depth))};
}

const isOrdered = (item) => /\d/.test(item[2]);

function list(lines, start, depth) {
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
      if (!continuesList(lines, end, first)) break;
      items.at(-1).push('');
    } else if (indent > first[1].length || (lines[end - 1].trim() !== '' && !startsBlock(line))) {
      items.at(-1).push(line.slice(Math.min(indent, width)));
    } else {
      break;
    }
  }
  return {end, build: () => listElement(first, items, depth)};
}

// Whether an item of the list or something indented follows the blank lines.
function continuesList(lines, blank, first) {
  const next = lines.slice(blank).find((line) => !BLANK.test(line));
  if (next === undefined) return false;
  const item = ITEM.exec(next);
  return next.search(/\S/) > first[1].length || (item && isOrdered(item) === isOrdered(first) && !RULE.test(next));
}

function listElement(first, items, depth) {
  const content = items.map((lines) => element('li', {}, ...children(lines, depth)));
  if (!isOrdered(first)) return element('ul', {}, ...content);
  return element('ol', {start: String(Number.parseInt(first[2], 10))}, ...content);
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll('\\|', '|'));
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
  const row = (tag, texts) => element('tr', {},
    ...head.map((_, i) => element(tag, {class: `align-${align[i]}`, dir: 'auto'}, ...inline(texts[i] ?? ''))));
  return {
    end,
    build: () => element('div', {class: 'table', tabindex: '0'}, element('table', {},
      element('thead', {}, row('th', head)),
      element('tbody', {}, ...lines.slice(start + 2, end).map((line) => row('td', cells(line)))))),
  };
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);
}

// A line break in a paragraph stays one: models end the lines of a poem so.
function paragraph(lines, start, depth) {
  let end = start + 1;
  while (end < lines.length && !BLANK.test(lines[end]) && !(depth < MAX_DEPTH && startsBlock(lines[end])) &&
         !startsTable(lines, end)) {
    ++end;
  }
  const text = lines.slice(start, end).map((line) => line.trim()).join('\n');
  return {end, build: () => element('p', {dir: 'auto'}, ...inline(text))};
}

const ESCAPED = /^\\[!-/:-@[-`{-~]/;
const BARE_ADDRESS = /^https?:\/\/[^\s<>"'`，。；：！？、（）《》“”]+/;
const MARKS = [['**', 'strong'], ['__', 'strong'], ['~~', 'del'], ['*', 'em'], ['_', 'em']];

// Returns the nodes of a text: strings, and elements for code, emphasis and links.
function inline(text, depth = 0) {
  if (depth >= MAX_DEPTH || text.length > MAX_INLINE) return [text];
  const nodes = [];
  const absent = new Set();  // marks that do not occur from here on, so that no search is repeated
  let plain = '';
  const emit = (node) => {
    if (plain) nodes.push(plain);
    plain = '';
    nodes.push(node);
  };
  for (let i = 0; i < text.length;) {
    const found = inlineAt(text, i, depth, absent);
    if (found?.node) emit(found.node);
    else plain += found ? found.text : text[i];
    i += found ? found.length : 1;
  }
  if (plain) nodes.push(plain);
  return nodes;
}

// Returns what starts at i, {node or text, length}, or null for an ordinary character.
function inlineAt(text, i, depth, absent) {
  switch (text[i]) {
    case '\\': return ESCAPED.test(text.slice(i, i + 2)) ? {text: text[i + 1], length: 2} : null;
    case '`': return codeSpan(text, i, absent);
    case '[': return link(text, i, depth, absent);
    case 'h': return bareAddress(text, i);
    case '*': case '_': case '~': return emphasis(text, i, depth, absent);
    default: return null;
  }
}

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
  if (end < 0) return {text: mark, length: run};
  return {node: element('code', {}, text.slice(i + run, end).trim() || ' '), length: end + run - i};
}

function emphasis(text, i, depth, absent) {
  const [mark, tag] = MARKS.find(([start]) => text.startsWith(start, i)) ?? [];
  if (!mark) return null;
  const inWord = (character) => character !== undefined && /[\p{L}\p{N}]/u.test(character);
  const opens = /\S/.test(text[i + mark.length] ?? '') && !(mark[0] === '_' && inWord(text[i - 1]));
  if (!opens) return {text: mark, length: mark.length};
  for (let end = find(text, mark, i + mark.length + 1, absent), tries = 0; end > 0 && tries < 20; ++tries) {
    const next = text[end + mark.length];
    const closes = /\S/.test(text[end - 1]) && !(mark[0] === '_' && inWord(next)) && next !== mark[0];
    if (closes) {
      return {node: element(tag, {}, ...inline(text.slice(i + mark.length, end), depth + 1)), length: end + mark.length - i};
    }
    end = find(text, mark, end + (next === mark ? 2 : 1), absent);  // "*" does not close at "**"
  }
  return {text: mark, length: mark.length};
}

function link(text, i, depth, absent) {
  const middle = find(text, '](', i + 1, absent);
  if (middle < 0 || middle - i > MAX_LABEL || /[[\]\n]/.test(text.slice(i + 1, middle))) return null;
  const end = find(text, ')', middle + 2, absent);
  if (end < 0) return null;
  const address = safeAddress(text.slice(middle + 2, end).trim().split(/\s/)[0]);
  if (!address) return null;
  return {node: linkElement(address, inline(text.slice(i + 1, middle), MAX_DEPTH)), length: end + 1 - i};
}

function bareAddress(text, i) {
  const found = BARE_ADDRESS.exec(text.slice(i, i + 2000))?.[0].replace(/[.,;:!?)\]}*_]+$/, '');
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
