// Shows the messages of one model in one turn: thoughts, text, tool calls, and what can be done with them.

import {announce, copyText, element, icon, iconButton, fitHeight} from './elements.js';
import {t} from './language.js';
import {showMarkdown} from './markdown.js';

// `actions` has regenerate(), continue(), retry() and sendResults(list of texts); `context_of` gives the context length of a model.
export class LaneView {
  constructor(lane, name, actions, context_of) {
    this.lane = lane;
    this.actions = actions;
    this.contextOf = context_of;
    this.answers = [];
    this.body = element('div', {class: 'answers'});
    this.footer = element('div', {class: 'answer-footer'});
    this.root = element('article', {class: 'lane'}, element('h2', {class: 'speaker'}, name), this.body, this.footer);
  }

  // Shows the present messages. While they are `live`, the last one is being written and there is no footer.
  show({live, error = null}) {
    const {messages} = this.lane;
    this.root.setAttribute('aria-busy', String(live));
    let shown = 0;
    messages.forEach((message, i) => {
      if (message.role !== 'assistant') return;
      if (shown === this.answers.length) {
        this.answers.push(new AnswerView((results) => this.actions.sendResults(results)));
        this.body.append(this.answers[shown].root);
      }
      const results = [];
      for (let at = i + 1; messages[at]?.role === 'tool'; ++at) results.push(messages[at].content);
      this.answers[shown++].show(message, results, live && i === messages.length - 1);
    });
    for (const view of this.answers.splice(shown)) view.root.remove();
    this.footer.replaceChildren(...(live ? [] : this.footerNodes(error)));
  }

  footerNodes(error) {
    const last = this.lane.messages.at(-1);
    const info = last?.info ?? {};
    const nodes = [];
    const shown_error = error ?? info.error;
    if (shown_error) {
      nodes.push(element('div', {class: 'error', role: 'alert'}, element('p', {}, shown_error),
        element('button', {type: 'button', class: 'quiet', onclick: () => this.actions.retry()}, t('retry'))));
    }
    const is_empty = !last?.content && !last?.reasoning_content && !last?.tool_calls;
    if (last?.role !== 'assistant' || (shown_error && is_empty)) return nodes;
    // After an error, trying again is to continue.
    const stopped = info.finish === 'length' || info.finish === 'stopped';
    const can_continue = stopped && !shown_error && (last.content || last.reasoning_content) && !last.tool_calls;
    nodes.push(element('div', {class: 'actions'},
      iconButton('copy', t('copyAnswer'), (event) => this.copy(event.currentTarget)),
      iconButton('regenerate', t('regenerate'), () => this.actions.regenerate()),
      can_continue && element('button', {
        type: 'button', class: 'quiet continue', 'aria-label': t('continueLabel'), onclick: () => this.actions.continue(),
      }, icon('forward'), t('continue')),
      this.statistics(info)));
    return nodes;
  }

  // The context length of the model may be known by now.
  showStatistics() {
    this.footer.querySelector('.statistics')?.replaceWith(this.statistics(this.lane.messages.at(-1).info ?? {}));
  }

  async copy(button) {
    const answers = this.lane.messages.filter((message) => message.role === 'assistant');
    const copied = await copyText(answers.map((message) => message.content).join('\n\n'));
    button.title = t(copied ? 'copied' : 'copyFailed');
    button.classList.toggle('done', copied);
    announce(button.title);
    setTimeout(() => {
      button.title = t('copyAnswer');
      button.classList.remove('done');
    }, 2000);
  }

  statistics(info) {
    const limit = this.contextOf(this.lane.model);
    const texts = [
      info.finish === 'stopped' && t('stopped'),
      info.finish === 'length' && t('cutShort'),
      info.speed && (info.estimated ? '≈ ' : '') + t('speed', info.speed.toFixed(info.speed < 10 ? 1 : 0)),
      info.first && t('firstToken', t('seconds', info.first.toFixed(info.first < 0.1 ? 3 : 2))),
      info.context && (limit ? t('contextUsed', info.context, limit) : t('contextTokens', info.context)),
    ];
    return element('p', {class: 'statistics'}, ...texts.filter((text) => text).map((text) => element('span', {}, text)));
  }
}

// One assistant message.
class AnswerView {
  #calls_shown = '';

  constructor(sendResults) {
    this.sendResults = sendResults;
    this.thoughts_title = element('span', {});
    this.thoughts_text = element('div', {class: 'markdown'});
    this.thoughts = element('details', {class: 'thoughts', hidden: true},
      element('summary', {}, icon('chevron'), this.thoughts_title), this.thoughts_text);
    this.text = element('div', {class: 'markdown'});
    this.waiting = element('div', {class: 'waiting', 'aria-hidden': 'true'}, element('i'), element('i'), element('i'));
    this.calls = element('div', {class: 'calls'});
    this.root = element('div', {class: 'answer'}, this.thoughts, this.text, this.waiting, this.calls);
  }

  show(message, results, live) {
    const thinking = live && message.content === '' && !message.tool_calls;
    this.thoughts.hidden = !message.reasoning_content;
    this.thoughts_title.textContent = t(thinking ? 'thinkingNow' : 'thoughts');
    this.thoughts.classList.toggle('live', thinking);
    showMarkdown(this.thoughts_text, message.reasoning_content ?? '');
    showMarkdown(this.text, message.content);
    this.text.classList.toggle('live', live && message.content !== '');
    this.waiting.hidden = !thinking || Boolean(message.reasoning_content);
    this.showCalls(message.tool_calls ?? [], results, live);
  }

  showCalls(calls, results, live) {
    const state = JSON.stringify([calls, results, live]);
    if (state === this.#calls_shown) return;
    this.#calls_shown = state;
    const boxes = [];
    const cards = calls.map((call, i) => callCard(call, results[i], !live, boxes));
    const send = element('button', {
      type: 'button', class: 'primary', onclick: () => this.sendResults([...results, ...boxes.map((box) => box.value)]),
    }, t('sendResults'));
    const can_send = !live && boxes.length > 0 && results.length === 0;
    this.calls.replaceChildren(...cards, ...(can_send ? [element('p', {class: 'note'}, t('resultHint')), send] : []));
  }
}

// A call is only shown: the user enters its result into the box.
function callCard(call, result, complete, boxes) {
  const {name} = call.function;
  const card = element('div', {class: 'call', role: 'group', 'aria-label': t('call', name)},
    element('h3', {}, icon('tool'), element('code', {}, name)),
    element('pre', {'aria-label': t('arguments'), tabindex: '0', dir: 'ltr'}, indented(call.function.arguments)));
  if (result !== undefined) {
    card.append(element('h4', {}, t('result')), element('pre', {tabindex: '0', dir: 'auto'}, result));
  } else if (complete) {
    const box = element('textarea', {rows: '2', 'aria-label': t('resultLabel', name), placeholder: t('result')});
    box.addEventListener('input', () => fitHeight(box));
    boxes.push(box);
    card.append(box);
  }
  return card;
}

function indented(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
