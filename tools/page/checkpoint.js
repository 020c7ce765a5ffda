// Opens checkpoints of the user's: files that are chosen, or dropped on the page, which never leave the browser.

import {announce, byId, element, icon, notify} from './elements.js';
import {forget, keep, keptFiles} from './kept.js';
import {t} from './language.js';
import {showPage} from './launch.js';
import {loadFiles} from './transport.js';

const WEIGHTS = /\.(pth|pt|bin|safetensors|gguf)$/i;

const nameOf = (path) => path.slice(path.lastIndexOf('/') + 1);
const inMb = (bytes) => (bytes / 1e6).toFixed(0);

// Returns the path of the checkpoint that files with these paths are, that of the only file of weights or of the folder of
// a config.json, and the name of a file to show. Throws an Error in words.
function checkpointOf(paths) {
  const weights = paths.filter((path) => WEIGHTS.test(path));
  if (weights.length === 0) throw new Error(t('noCheckpoint'));
  const names = new Set(paths.map(nameOf));
  const is_folder = names.has('config.json') && !/\.(pth|gguf)$/i.test(weights[0]);
  if (!is_folder && weights.length > 1) throw new Error(t('manyCheckpoints', nameOf(weights[0]), nameOf(weights[1])));
  if (!names.has('tokenizer.json') && !/\.gguf$/i.test(weights[0])) throw new Error(t('tokenizerMissing', nameOf(weights[0])));
  const path = is_folder ? weights[0].slice(0, Math.max(weights[0].lastIndexOf('/'), 0)) : weights[0];
  return {path, name: nameOf(weights[0])};
}

// -- what is chosen or dropped, as [{path, file}]

function chosenFiles(files) {
  return [...files].map((file) => ({path: file.webkitRelativePath || file.name, file}));
}

async function droppedFiles({items, files}) {
  const entries = [...items].map((item) => item.webkitGetAsEntry?.());
  if (!entries.some((entry) => entry?.isDirectory)) return chosenFiles(files);
  const handles = [...items].map((item) => item.getAsFileSystemHandle?.());
  return (await Promise.all(entries.map(async (entry, i) => (entry ? filesOf(entry, await handles[i]) : [])))).flat();
}

// A checkpoint's folder has no other folders. Only Chromium has handles; there, a page from disk may not read entries.
async function filesOf(entry, handle) {
  if (entry.isFile) return [{path: entry.name, file: await (handle?.getFile() ?? fileOf(entry))}];
  const files = [];
  for await (const inner of handle?.values() ?? innerOf(entry)) {
    const is_file = inner.isFile ?? inner.kind === 'file';
    if (is_file) files.push({path: `${entry.name}/${inner.name}`, file: await (inner.getFile?.() ?? fileOf(inner))});
  }
  return files;
}

async function* innerOf(entry) {
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    yield* some;
  }
}

const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

// -- opening

const bar = element('progress', {'aria-hidden': 'true', max: '1', value: '0'});
const words = element('p', {});
const banner = element('div', {class: 'banner opening', id: 'opening', role: 'status', hidden: ''}, words, bar);
const problem = element('p', {});
const failed = element('div', {class: 'error banner', id: 'not-opened', role: 'alert', hidden: ''}, problem);

function show(text, part) {
  words.textContent = text;
  bar.value = part;
  banner.hidden = false;
}

// Opens a checkpoint, with a new conversation if `is_new`. Returns its name; null, with an error that is shown, if that fails.
async function openFiles(files, is_new) {
  failed.hidden = true;
  try {
    const {path, name} = checkpointOf(files.map((file) => file.path));
    show(t('readingModel', name, 0, '?'), 0);
    const loaded = await loadFiles(files, {path}, (read, size) =>
      show(read < size ? t('readingModel', name, inMb(read), inMb(size)) : t('preparingModel', name), read / size));
    dispatchEvent(new CustomEvent('minimind-models', {detail: {name: is_new ? loaded : null}}));
    announce(t('openedModel', loaded));
    return loaded;
  } catch (error) {
    fail(t('notOpened', error.message));
    return null;
  } finally {
    banner.hidden = true;
  }
}

function fail(text) {
  problem.textContent = text;
  failed.hidden = false;
}

// Opens files that the user has chosen, which the browser may then keep.
async function openChosen(files) {
  const name = await openFiles(files, true);
  if (!name) return;
  notify(t('openedModel', name), t('keepModel'), async () => {
    try {
      await keep(files);
      notify(t('keptModel', name));
    } catch (error) {
      fail(t('notKept', error.message));
    }
  });
}

// Opens what the browser has kept. Returns whether there is any.
async function openKept() {
  const files = await kept;
  if (!files) return false;
  const name = await openFiles(files, !byId('welcome').hidden);
  notify(t('keptModel', name ?? nameOf(files[0].path)), t('forgetModel'), () => forget().then(() => notify(t('forgotModel'))));
  return true;
}

// -- the parts of the page

const input = element('input', {type: 'file', id: 'checkpoint-files', multiple: '', hidden: ''});
input.addEventListener('change', () => {
  const files = chosenFiles(input.files);
  input.value = '';
  if (files.length > 0) openChosen(files);
});
const button = element('button', {type: 'button', class: 'quiet', id: 'open-model', 'data-label': 'openModelLabel', onclick: () => input.click()},
  icon('upload'), element('span', {'data-text': 'openModel'}));
const place = element('div', {id: 'drop-place', 'aria-hidden': 'true', hidden: ''}, element('p', {'data-text': 'dropHere'}));

byId('models').after(button, input);
document.querySelector('header').after(banner, failed);
document.body.append(place);

const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
let depth = 0;  // of elements that a file is over
addEventListener('dragenter', (event) => { if (hasFiles(event)) place.hidden = ++depth <= 0; });
addEventListener('dragleave', (event) => { if (hasFiles(event)) place.hidden = --depth <= 0; });
addEventListener('dragover', (event) => { if (hasFiles(event)) event.preventDefault(); });
addEventListener('drop', (event) => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  depth = 0;
  place.hidden = true;
  droppedFiles(event.dataTransfer).then(openChosen).catch((error) => fail(t('notOpened', error.message)));
});

// -- the start

// The model inside writes at once, unless a conversation is shown or another checkpoint is kept.
const kept = keptFiles();
show(t('starting'), 0);
addEventListener('minimind-shown', async () => {
  banner.hidden = true;
  showPage();
  if (await openKept()) return;
  if (!byId('welcome').hidden) document.querySelector('#starters button').click();
});
