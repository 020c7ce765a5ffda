// Starts the page and connects its parts.

import {Chat} from './chat.js';
import {Completion} from './completion.js';
import {loadConversation, newConversation, titleOf} from './conversations.js';
import {byId, element} from './elements.js';
import {Inside} from './inside.js';
import {isChinese, switchLanguage, t, translate} from './language.js';
import {ModelChoice} from './model_choice.js';
import {listModels} from './server.js';
import {editTools, resetSampling, showDefaults, showSampling} from './settings.js';
import {Sidebar} from './sidebar.js';
import {showStarters} from './starters.js';
import {read, write} from './storage.js';

const narrow = matchMedia('(max-width: 60rem)');

const models = new ModelChoice(showModelFacts);
const sidebar = new Sidebar((conversation) => {
  if (conversation?.id !== chat.conversation.id) return open(conversation ?? newConversation(chat.conversation));
  refresh(conversation);
  showChat();
});
const chat = new Chat(models, (conversation) => {
  keepCurrent();
  if (conversation === chat.conversation) showTitle();
});
const completion = new Completion(models);
const inside = new Inside(models);

sidebar.onrename = (id, title) => {
  const conversation = id === chat.conversation.id ? chat.conversation : loadConversation(id);
  if (!conversation) return;  // another tab has deleted it
  conversation.title = title;
  chat.keep(conversation);
};

// What the page shows of the chosen models.
function showModelFacts() {
  showDefaults(models.detailsOf(models.chosen()[0]).defaults);
  chat.showModelFacts();
  showInsideTab();
  showStarters(models.parts(models.chosen()[0])[0], (question) => {
    chat.send(question);
    chat.focusBox();
  });
}

// -- conversations

function open(conversation) {
  chat.open(conversation);
  models.choose(conversation.models.length > 0 ? conversation.models : models.names);
  showModelFacts();
  keepCurrent();
  showConversation();
  showChat();
}

// Another tab has changed the shown conversation.
function refresh(conversation) {
  if (conversation.changed === chat.conversation.changed || byId('settings').contains(document.activeElement)) return;
  if (chat.refresh(conversation)) showConversation();
}

// What is shown of the conversation beside its turns.
function showConversation() {
  byId('system').value = chat.conversation.system;
  editTools(chat.conversation.tools, (tools) => changeConversation({tools}));
  showTitle();
}

// A reload shows the conversation of the tab again, and a new tab that of the last one.
function keepCurrent() {
  write('current', chat.conversation.id, 'tab');
  write('current', chat.conversation.id);
  sidebar.show(chat.conversation.id);
}

function showChat() {
  choosePanel('chat');
  if (narrow.matches) toggleSidebar(false);
  requestAnimationFrame(() => chat.focusBox());  // it needs the layout, which a frame computes anyway
}

function showTitle() {
  const question = chat.conversation.title || chat.conversation.turns[0]?.question?.trim().slice(0, 60);
  document.title = question ? `${question} · MiniMind` : 'MiniMind';
  byId('chat-title').textContent = titleOf(chat.conversation);
}

// A conversation without turns is not kept: it would only fill the list.
function changeConversation(fields) {
  Object.assign(chat.conversation, fields);
  if (chat.conversation.turns.length > 0) chat.keep();
}

byId('new-chat').addEventListener('click', () => open(newConversation(chat.conversation)));
byId('system').addEventListener('input', (event) => changeConversation({system: event.target.value}));

// Another tab has changed something.
addEventListener('storage', (event) => {
  if (!event.key?.startsWith('minimind.conversation.')) return;
  const changed = event.key === `minimind.conversation.${chat.conversation.id}` && loadConversation(chat.conversation.id);
  if (changed) refresh(changed);
  sidebar.show();
});

addEventListener('pagehide', () => {
  if (chat.isRunning()) chat.keep();
});

// -- the views

const PANELS = ['chat', 'completion', 'inside'];

function choosePanel(chosen) {
  for (const name of PANELS) {
    byId(name).hidden = name !== chosen;
    byId(`${name}-tab`).setAttribute('aria-selected', String(name === chosen));
    byId(`${name}-tab`).tabIndex = name === chosen ? 0 : -1;
  }
  document.body.dataset.panel = chosen;
}

for (const name of PANELS) {
  const tab = byId(`${name}-tab`);
  tab.addEventListener('click', () => choosePanel(name));
  tab.addEventListener('keydown', (event) => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    const shown = PANELS.filter((panel) => !byId(`${panel}-tab`).hidden);
    const step = event.key === 'ArrowRight' ? 1 : shown.length - 1;
    const other = shown[(shown.indexOf(name) + step) % shown.length];
    choosePanel(other);
    byId(`${other}-tab`).focus();
  });
}

// Only a server that allows it has the view.
function showInsideTab() {
  const allowed = models.detailsOf(models.chosen()[0]).inside === true;
  byId('inside-tab').hidden = !allowed;
  if (!allowed && !byId('inside').hidden) choosePanel('chat');
  inside.modelChanged();
}

// -- sidebar and settings: beside the view if there is room, else over it

function toggleSidebar(shown) {
  document.body.classList.toggle('sidebar-shown', shown);
  byId('sidebar').inert = !shown;
  if (!narrow.matches) write('sidebar', shown);
  showShade();
}

function toggleSettings(shown) {
  byId('settings').hidden = !shown;
  document.body.classList.toggle('settings-shown', shown);
  byId('open-settings').setAttribute('aria-expanded', String(shown));
  showShade();
}

// What lies under the shade cannot be reached by keyboard either.
function showShade() {
  const sidebar_shown = document.body.classList.contains('sidebar-shown');
  const settings_shown = !byId('settings').hidden;
  const over = narrow.matches && (sidebar_shown || settings_shown);
  byId('shade').hidden = !over;
  byId('main').inert = over;
}

byId('open-sidebar').addEventListener('click', () => {
  toggleSidebar(true);
  byId('close-sidebar').focus();
});
byId('close-sidebar').addEventListener('click', () => {
  toggleSidebar(false);
  byId('open-sidebar').focus();
});
byId('open-settings').addEventListener('click', () => {
  toggleSettings(byId('settings').hidden);
  if (!byId('settings').hidden) byId('system').focus();
});
const closeSettings = () => {
  toggleSettings(false);
  byId('open-settings').focus();
};
byId('close-settings').addEventListener('click', closeSettings);
byId('shade').addEventListener('click', () => {
  toggleSettings(false);
  toggleSidebar(false);
});
narrow.addEventListener('change', () => toggleSidebar(!narrow.matches));

// Escape closes what lies over the view, then stops the answer.
addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || event.isComposing || byId('key-box').open) return;
  if (!byId('settings').hidden && (narrow.matches || byId('settings').contains(document.activeElement))) closeSettings();
  else if (narrow.matches && document.body.classList.contains('sidebar-shown')) byId('close-sidebar').click();
  else if (chat.isRunning()) byId('stop').click();
  else completion.stop();
});

// -- settings

byId('reset-sampling').addEventListener('click', () => {
  resetSampling();
  byId('sampling-temperature').focus();
});
byId('key-cancel').addEventListener('click', () => byId('key-box').close('cancel'));

const THEMES = ['auto', 'light', 'dark'];
let theme = THEMES.includes(read('theme')) ? read('theme') : 'auto';

function showTheme() {
  document.documentElement.dataset.theme = theme;
  const label = t({auto: 'themeAuto', light: 'themeLight', dark: 'themeDark'}[theme]);
  byId('theme').setAttribute('aria-label', label);
  byId('theme').title = label;
}

byId('theme').addEventListener('click', () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  write('theme', theme);
  showTheme();
});

function showLanguage() {
  document.documentElement.lang = isChinese() ? 'zh-CN' : 'en';
  translate(document);
  showTheme();
  showSampling();
}

byId('language').addEventListener('click', () => {
  switchLanguage();
  showLanguage();
  models.show();
  showModelFacts();
  chat.render();
  showConversation();
  completion.show();
  completion.showState();
  inside.show();
  sidebar.show();
});

// -- the start

let shownModels = '';

function showModels(list) {
  shownModels = JSON.stringify(list);
  models.setModels(list);
  showModelFacts();
}

async function loadModels() {
  const banner = byId('models-error');
  banner.hidden = true;
  try {
    showModels(await listModels());
  } catch (error) {
    banner.querySelector('p').replaceWith(element('p', {}, error.message));
    banner.hidden = false;
    models.show();
  }
}

// In the page in one file, the checkpoints are others now: a conversation with a name starts, or that which is shown goes on.
addEventListener('minimind-models', async ({detail}) => {
  await loadModels();
  if (detail.name) return open({...newConversation(chat.conversation), models: [detail.name]});
  models.choose(chat.conversation.models);
  showModelFacts();
});

// A trainer may save checkpoints into the server's folder. The list stays as it is while the user chooses from it.
const MODELS_EVERY = 10_000;  // milliseconds

async function followModels() {
  if (document.hidden || byId('models').contains(document.activeElement)) return;
  try {
    const list = await listModels({asks: false});
    if (JSON.stringify(list) !== shownModels) showModels(list);
  } catch {
    // The next request shows what is wrong.
  }
}

setInterval(followModels, MODELS_EVERY);
document.addEventListener('visibilitychange', followModels);
byId('models-retry').addEventListener('click', async () => {
  await loadModels();
  if (![document.body, byId('models-retry')].includes(document.activeElement)) return;  // the user is at something else
  if (byId('models-error').hidden) chat.focusBox();
  else byId('models-retry').focus();
});
showLanguage();
toggleSidebar(!narrow.matches && read('sidebar') !== false);
open(loadConversation(read('current', 'tab') ?? read('current')) ?? newConversation());
loadModels().then(() => dispatchEvent(new Event('minimind-shown')));
