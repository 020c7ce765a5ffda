// The questions that an empty conversation suggests.

import {byId, element} from './elements.js';
import {isChinese, t} from './language.js';

const POET = 'minimind-poet';  // the bundled model

// The poet knows requests in Chinese alone, in these words.
const POEMS = [['写一首七言绝句，题目：秋夜', 'poem1'], ['以“山居”为题写一首五言律诗', 'poem2'], ['续写：空山新雨后，', 'poem3']];
const EXAMPLES = ['example1', 'example2', 'example3'];

// Shows those that fit the checkpoint; `ask` is called with the chosen one.
export function showStarters(checkpoint, ask) {
  const is_poet = checkpoint === POET;
  const starter = (question, ...content) => element('button', {type: 'button', onclick: () => ask(question)}, ...content);
  const poems = POEMS.map(([question, meaning]) => starter(question, element('span', {lang: 'zh-CN'}, question),
    !isChinese() && element('small', {}, t(meaning))));
  byId('welcome-title').textContent = t(is_poet ? 'poetWelcome' : 'welcome');
  byId('welcome-note').textContent = is_poet ? [t('poetNote'), t('welcomeNote')].join(isChinese() ? '' : ' ') : t('welcomeNote');
  byId('starters').replaceChildren(...(is_poet ? poems : EXAMPLES.map((name) => starter(t(name), t(name)))));
}
