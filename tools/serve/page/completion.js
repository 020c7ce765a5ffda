// Plain continuation of a text, with the probability of each token and its alternatives.

import {Clock} from './answer.js';
import {announce, byId, element, icon} from './elements.js';
import {t} from './language.js';
import {streamChunks} from './server.js';
import {samplingFields} from './settings.js';
import {read, write} from './storage.js';
import {TokenCells, textOf} from './tokens.js';

const ALTERNATIVES = 5;
const MAX_TOKENS = 128;  // unless the user has set a limit

export class Completion {
  constructor(models) {
    this.models = models;
    this.controller = null;
    this.chosen = null;  // index of the cell whose details are shown
    this.reset('');
    const prompt = byId('prompt');
    prompt.value = read('prompt') ?? '';
    prompt.addEventListener('input', () => { write('prompt', prompt.value); this.showState(); });
    prompt.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
      event.preventDefault();
      this.run();
    });
    byId('complete').addEventListener('click', () => this.run());
    byId('complete-stop').addEventListener('click', () => { this.stop(); byId('prompt').focus(); });
    byId('complete-more').addEventListener('click', () => {
      this.run(this.prompt, this.text.cells.filter((cell) => !cell.special));
      byId('complete-stop').focus();
    });
    byId('complete-clear').addEventListener('click', () => this.clear());
    this.connectTokens();
    this.showState();
  }

  reset(prompt) {
    this.prompt = prompt;
    this.text = new TokenCells();
    this.info = {};
    this.show();
  }

  stop() {
    this.controller?.abort();
  }

  clear() {
    this.stop();
    byId('prompt').value = '';
    write('prompt', '');
    this.reset('');
    this.showState();
    byId('prompt').focus();
  }

  // Continues the text of the box, or this one with the cells that are kept before it.
  async run(prompt = byId('prompt').value, kept = []) {
    if (this.controller || prompt === '') return;
    this.reset(prompt);
    this.text.cells.push(...kept);
    this.show();
    const controller = this.controller = new AbortController();
    this.showState();
    announce(t('answering'));
    const clock = new Clock();
    this.info = {};
    try {
      for await (const chunk of streamChunks('v1/completions', this.body(prompt + textOf(kept)), controller.signal)) {
        if (chunk.usage) clock.usage = chunk.usage;
        this.take(chunk.choices?.[0], clock, chunk.time);
      }
    } catch (error) {
      if (error.name === 'AbortError') this.info.finish = 'stopped';
      else this.info.error = error.message;
    }
    if (this.controller !== controller) return;
    this.controller = null;
    Object.assign(this.info, clock.summary());
    this.showState();
    if (!this.info.error) announce(t('answered', this.text.text()));
  }

  body(prompt) {
    const [model] = this.models.chosen();
    return {...(model && {model}), prompt, max_tokens: MAX_TOKENS, ...samplingFields(), logprobs: ALTERNATIVES};
  }

  take(choice, clock, time) {
    if (!choice) return;
    if (choice.finish_reason) this.info.finish = choice.finish_reason;
    const has_tokens = choice.logprobs?.tokens?.length > 0;
    if (!has_tokens && !choice.text) return;
    clock.token(time);
    const first = has_tokens ? this.text.add(choice.text ?? '', choice.logprobs) : this.text.addText(choice.text);
    this.showFrom(first);
  }

  // -- showing

  show() {
    byId('continued').hidden = this.prompt === '';
    byId('tokens').replaceChildren(element('span', {class: 'prompt-text'}, this.prompt));
    this.nodes = [];
    this.choose(null);
    this.showFrom(0);
  }

  showFrom(first) {
    for (const node of this.nodes.splice(first)) node.remove();
    for (const cell of this.text.cells.slice(first)) {
      const node = tokenElement(cell, this.nodes.length);
      this.nodes.push(node);
      byId('tokens').append(node);
    }
    if (this.chosen === null && this.nodes.length > 0) this.nodes[0].tabIndex = 0;
  }

  showState() {
    const running = this.controller !== null;
    byId('complete').hidden = running;
    byId('complete-stop').hidden = !running;
    byId('complete-more').hidden = running || this.text.cells.length === 0;
    byId('complete').disabled = byId('prompt').value === '';
    byId('tokens').setAttribute('aria-busy', String(running));
    byId('complete-error').hidden = !this.info.error;
    byId('complete-error').textContent = this.info.error ?? '';
    byId('complete-statistics').replaceChildren(...(running ? [] : this.statistics()).map((text) => element('span', {}, text)));
  }

  statistics() {
    const {info} = this;
    const perplexity = this.text.perplexity();
    return [
      info.finish === 'stopped' && t('stopped'),
      info.speed && t('speed', info.speed.toFixed(info.speed < 10 ? 1 : 0)),
      info.first && t('firstToken', t('seconds', info.first.toFixed(info.first < 0.1 ? 3 : 2))),
      info.context && t('contextTokens', info.context),
      perplexity && t('average', perplexity.tokens, perplexity.value.toFixed(2)),
    ].filter((text) => text);
  }

  // -- looking at tokens

  connectTokens() {
    const tokens = byId('tokens');
    const indexOf = (event) => {
      const node = event.target.closest('.token');
      return node ? Number(node.dataset.index) : null;
    };
    const show = (event) => {
      const index = indexOf(event);
      if (index !== null) this.choose(index);
    };
    tokens.addEventListener('pointerover', show);
    tokens.addEventListener('focusin', show);
    tokens.addEventListener('click', (event) => this.nodes[indexOf(event)]?.focus());
    tokens.addEventListener('keydown', (event) => {
      const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1}[event.key];
      const index = indexOf(event);
      if (index === null) return;
      if (step) this.nodes[index + step]?.focus();
      else if (event.key === 'Home') this.nodes[0].focus();
      else if (event.key === 'End') this.nodes.at(-1).focus();
      else if (event.key === 'Enter') byId('token-details').querySelector('button')?.focus();
      else return;
      event.preventDefault();
    });
  }

  choose(index) {
    if (index === this.chosen && index !== null) return;
    for (const node of this.nodes) {
      node.tabIndex = -1;
      node.classList.remove('chosen');
    }
    this.chosen = index;
    const details = byId('token-details');
    byId('token-panel').classList.toggle('filled', index !== null);
    if (index === null) {
      details.replaceChildren();
      return;
    }
    this.nodes[index].tabIndex = 0;
    this.nodes[index].classList.add('chosen');
    const {tokens} = this.text.cells[index];
    details.replaceChildren(...(tokens.length > 0 ? tokens.flatMap((token, at) => this.tokenDetails(token, index, at)) :
      [element('p', {class: 'note'}, t('noProbability'))]));
  }

  tokenDetails(token, index, at) {
    const probability = token.logprob === null ? t('noProbability') : t('probability', percent(token.logprob));
    const rows = token.alternatives.map(([text, logprob]) => {
      const replaces = at === 0 && text !== token.text && !text.startsWith('bytes:');
      const bar = element('i', {class: 'bar'});
      bar.style.setProperty('--part', Math.exp(logprob).toFixed(4));
      const content = [element('code', {}, visible(text)), bar, element('span', {}, percent(logprob))];
      return element('li', {class: text === token.text ? 'taken' : ''}, replaces ?
        element('button', {
          type: 'button', 'aria-label': `${t('fromHere', visible(text))}, ${percent(logprob)}`, title: t('fromHere', visible(text)),
          onclick: () => this.replace(index, {text, logprob, alternatives: token.alternatives}),
        }, ...content) : element('span', {class: 'alternative'}, ...content));
    });
    const title = element('h2', {}, element('code', {}, visible(token.text)), element('span', {}, probability));
    return [title, element('ol', {}, ...rows)];
  }

  // Continues from an alternative: the tokens after it are dropped.
  replace(index, token) {
    if (this.controller) return;
    const kept = [...this.text.cells.slice(0, index), {text: token.text, tokens: [token], whole: true}];
    this.run(this.prompt, kept);
    byId('complete-stop').focus();
  }
}

function tokenElement(cell, index) {
  const logprob = cell.tokens.reduce((sum, token) => sum + (token.logprob ?? 0), 0);
  const node = element('span', {
    class: cell.special ? 'token special' : 'token', role: 'button', tabindex: '-1', 'data-index': String(index),
    'aria-label': t('tokenLabel', visible(cell.text), cell.tokens.length > 0 ? percent(logprob) : t('noProbability')),
  }, ...cell.text.split(/(?=\n)/).flatMap((part) => part.startsWith('\n') ? [element('i', {class: 'line-end'}), part] : [part]));
  if (cell.tokens.length > 0) node.style.setProperty('--probability', Math.exp(logprob).toFixed(4));
  return node;
}

// Returns the text with its whitespace visible.
const visible = (text) => text.replaceAll('\n', '↵').replaceAll('\t', '⇥').replace(/^ | $/g, '␣');

function percent(logprob) {
  const value = 100 * Math.exp(logprob);
  return value < 0.1 ? '< 0.1%' : `${value.toFixed(value < 9.95 ? 1 : 0)}%`;
}
