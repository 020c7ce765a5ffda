// The checkpoint that the browser keeps for this page, in its own database, if the user says so: the files that were opened.

import {t} from './language.js';
import {erase, read, write} from './storage.js';

const STORE = 'checkpoint', KEY = 'files';

const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

async function store(mode) {
  const opening = indexedDB.open('minimind', 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
  return (await result(opening)).transaction(STORE, mode).objectStore(STORE);
}

// Keeps these files, as [{path, file}], in place of others. Throws an Error in words, or what the browser says, if it does not.
export async function keep(files) {
  await result((await store('readwrite')).put(files, KEY));
  if (write('kept', true)) return;
  await forget();
  throw new Error(t('noStorage'));
}

// Returns them; null if there are none, or the browser keeps nothing.
export async function keptFiles() {
  if (!read('kept')) return null;  // at once: a database takes as long to open as an answer to start
  try {
    return await result((await store('readonly')).get(KEY)) ?? null;
  } catch {
    return null;
  }
}

export async function forget() {
  await result((await store('readwrite')).delete(KEY));
  erase('kept');
}
