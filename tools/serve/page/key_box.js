// The box for the API key. The key is kept until the tab is closed.

import {byId} from './elements.js';
import {t} from './language.js';

const NAME = 'minimind.key';

let waiting = null;  // the promise of an open box

export const storedKey = () => sessionStorage.getItem(NAME);

// Asks for a key. The promise gives whether there is one. Requests that fail together share one box.
export function askForKey(was_wrong) {
  waiting ??= openBox(was_wrong).finally(() => { waiting = null; });
  return waiting;
}

function openBox(was_wrong) {
  const box = byId('key-box');
  const input = byId('key');
  input.value = '';
  byId('key-error').textContent = was_wrong ? t('keyWrong') : '';
  box.returnValue = '';
  box.showModal();
  input.focus();
  return new Promise((resolve) => {
    box.addEventListener('close', () => {
      const key = input.value.trim();
      input.value = '';
      const given = box.returnValue === 'use' && key !== '';
      if (given) sessionStorage.setItem(NAME, key);
      resolve(given);
    }, {once: true});
  });
}
