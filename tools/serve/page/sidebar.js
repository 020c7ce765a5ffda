// The list of conversations: search, rename, delete, export and import.

import {allConversations, eraseConversation, exportConversation, importConversations, keepConversation, loadConversation, matches, newId,
  titleOf} from './conversations.js';
import {byId, download, element, iconButton, notify} from './elements.js';
import {t} from './language.js';

export class Sidebar {
  // `onopen` is called with the conversation to show, or null for a new one.
  constructor(onopen) {
    this.onopen = onopen;
    this.current = null;  // id
    this.renaming = false;
    byId('search').addEventListener('input', () => this.show());
    byId('export-all').addEventListener('click', () => {
      download('minimind-conversations.json', json(allConversations().map(exportConversation)));
    });
    byId('import').addEventListener('click', () => byId('import-files').click());
    byId('import-files').addEventListener('change', (event) => this.importFiles([...event.target.files]));
  }

  show(current = this.current) {
    this.current = current;
    if (this.renaming) return;  // shown afterwards
    const all = allConversations();
    const wanted = byId('search').value;
    const shown = all.filter((conversation) => matches(conversation, wanted));
    byId('conversation-list').replaceChildren(...shown.map((conversation) => this.item(conversation)));
    byId('list-note').textContent = shown.length > 0 ? '' : t(all.length > 0 ? 'noMatch' : 'noneYet');
    byId('export-all').disabled = all.length === 0;
  }

  item(conversation) {
    const is_current = conversation.id === this.current;
    const title = element('button', {
      type: 'button', class: 'title', dir: 'auto', 'aria-current': is_current ? 'true' : null,
      onclick: () => this.onopen(conversation),
    }, titleOf(conversation));
    const row = element('li', {class: is_current ? 'current' : ''}, title, element('span', {class: 'item-actions'},
      iconButton('edit', t('rename'), () => this.rename(conversation, row)),
      iconButton('download', t('exportOne'), () => {
        download(`${fileName(titleOf(conversation))}.json`, json(exportConversation(conversation)));
      }),
      iconButton('trash', t('remove'), () => this.remove(conversation))));
    return row;
  }

  rename(conversation, row) {
    const input = element('input', {type: 'text', 'aria-label': t('rename')});
    input.value = titleOf(conversation);
    const finish = (keep) => {
      input.onblur = null;
      this.renaming = false;
      if (keep && input.value.trim() !== titleOf(conversation)) this.onrename(conversation.id, input.value.trim());
      this.show();
      byId('conversation-list').querySelector('[aria-current]')?.focus();
    };
    input.addEventListener('keydown', (event) => {
      if (event.isComposing || (event.key !== 'Enter' && event.key !== 'Escape')) return;
      event.stopPropagation();
      event.preventDefault();  // Enter would also press what gets the focus
      finish(event.key === 'Enter');
    });
    input.onblur = () => finish(true);
    this.renaming = true;
    row.replaceChildren(input);
    input.select();
  }

  remove(conversation) {
    eraseConversation(conversation.id);
    if (conversation.id === this.current) this.onopen(null);
    else this.show();
    byId('new-chat').focus();
    notify(t('removed', titleOf(conversation)), t('undo'), () => {
      if (loadConversation(conversation.id)) conversation.id = newId();  // another tab has gone on with it
      keepConversation(conversation);
      this.onopen(conversation);
    });
  }

  async importFiles(files) {
    const imported = [];
    const problems = [];
    for (const file of files) {
      try {
        imported.push(...importConversations(await file.text()));
      } catch (error) {
        problems.push(t('notImported', file.name, error.message));
      }
    }
    byId('import-files').value = '';
    if (!imported.every(keepConversation)) problems.push(t('storageFull'));
    if (imported.length > 0) this.onopen(imported[0]);
    const done = imported.length === 1 ? t('importedOne') : imported.length > 1 ? t('imported', imported.length) : '';
    notify([done, ...problems].filter((text) => text).join(' '));
  }
}

const json = (value) => `${JSON.stringify(value, null, 2)}\n`;

// Returns the title without what a file system may reject.
function fileName(title) {
  return title.replace(/[\p{C}\\/:*?"<>|.]+/gu, ' ').trim().slice(0, 60) || 'conversation';
}
