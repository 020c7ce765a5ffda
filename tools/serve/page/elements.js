// Small helpers for building the page. Text always becomes a text node; no function here parses HTML.

const SVG = 'http://www.w3.org/2000/svg';

// Returns a new element. A name such as "onclick" adds a listener; true gives an empty attribute; false, null and undefined
// are left out. Children are nodes or strings; they come first, because with dir="auto" Chromium looks at all of them again for
// each one that is added.
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  node.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? '' : value);
  }
  return node;
}

// Returns a new element of SVG. Children are nodes or strings.
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Returns one of the symbols that index.html defines.
export function icon(name) {
  return svg('svg', {class: 'icon', 'aria-hidden': 'true'}, svg('use', {href: `#icon-${name}`}));
}

// Returns a button that shows an icon; the label is its tooltip and its name for screen readers.
export function iconButton(name, label, onclick, attributes = {}) {
  return element('button', {type: 'button', class: 'icon-button', 'aria-label': label, title: label, onclick, ...attributes},
    icon(name));
}

export const byId = (id) => document.getElementById(id);

// Has a screen reader say the text once it has finished what it says now.
export function announce(text) {
  byId('announcer').replaceChildren(text);
}

let notice_timer = 0;

// Shows a short text for some seconds, with a button that calls `undo` if it is given.
export function notify(text, undo_label, undo) {
  const notice = byId('notice');
  clearTimeout(notice_timer);
  const close = () => { notice.hidden = true; };
  const button = undo && element('button', {type: 'button', class: 'link', onclick: () => { close(); undo(); }}, undo_label);
  notice.replaceChildren(element('span', {}, text), ...(button ? [button] : []));
  notice.hidden = false;
  notice_timer = setTimeout(close, undo ? 10000 : 4000);
}

// Copies the text. The clipboard of browsers works only on secure addresses, such as 127.0.0.1; elsewhere a selection serves.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element('textarea', {class: 'off-screen', 'aria-hidden': 'true'});
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand('copy');
    area.remove();
    return copied;
  }
}

// Offers the text to the user as a file.
export function download(name, text, type = 'application/json') {
  const address = URL.createObjectURL(new Blob([text], {type}));
  const link = element('a', {href: address, download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// Gives a textarea the height of its text, up to the max-height of its style.
export function fitHeight(area) {
  area.style.height = 'auto';
  area.style.height = `${area.scrollHeight + area.offsetHeight - area.clientHeight}px`;
}

// Whether the key press is an Enter that sends. While an input method composes, Enter chooses a candidate; Safari reports the
// last such key only by the code 229.
export function isSendKey(event) {
  return event.key === 'Enter' && !event.shiftKey && !event.altKey && !event.isComposing && event.keyCode !== 229;
}
