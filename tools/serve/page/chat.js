// The chat: a conversation's turns, the box to write in, and the answers that are being written.

import {streamAnswer} from './answer.js';
import {keepConversation, loadConversation, messagesOf, newId} from './conversations.js';
import {announce, byId, element, fitHeight, iconButton, isSendKey, notify} from './elements.js';
import {t} from './language.js';
import {LaneView} from './message_view.js';
import {read, write} from './storage.js';
import {addVersion, choicesOf, showVersion} from './versions.js';

const SAVE_EVERY = 1000;  // milliseconds, while an answer is written

export class Chat {
  // `models` gives the chosen names, and of a name the context length and whether it minds thinking; `onkept` is called when the conversation has changed.
  constructor(models, onkept) {
    this.models = models;
    this.onkept = onkept;
    this.running = new Map();  // for each lane that is being written: {controller, turn_index}
    this.views = [];           // for each turn, the views of its lanes
    this.think = read('think') === true;
    this.last_saved = 0;
    this.connectComposer();
  }

  open(conversation) {
    this.stop();
    this.conversation = conversation;
    this.render();
    if (conversation.turns.length > 0) this.scrollToEnd();
  }

  // Shows what another tab has made of the conversation. What is being written here stays, and goes its own way: see save().
  // Returns whether it is shown.
  refresh(conversation) {
    if (this.isRunning() || byId('turns').querySelector('.editor, .call textarea:not(:placeholder-shown)')) return false;
    this.conversation = conversation;
    this.followEnd(() => this.render());
    return true;
  }

  isRunning() {
    return this.running.size > 0;
  }

  stop() {
    for (const {controller} of this.running.values()) controller.abort();
    this.running.clear();
    this.showRunning();
  }

  // -- the box to write in

  connectComposer() {
    const box = byId('message');
    box.value = read('draft', 'tab') ?? '';
    if (box.value) fitHeight(box);
    box.addEventListener('input', () => {
      fitHeight(box);
      write('draft', box.value, 'tab');
      this.showRunning();
    });
    box.addEventListener('keydown', (event) => {
      if (!isSendKey(event)) return;
      event.preventDefault();
      this.sendBox();
    });
    byId('send').addEventListener('click', () => this.sendBox());
    byId('stop').addEventListener('click', () => {
      this.stop();
      this.focusBox();
    });
    const think = byId('think');
    think.setAttribute('aria-pressed', String(this.think));
    think.addEventListener('click', () => {
      this.think = !this.think;
      think.setAttribute('aria-pressed', String(this.think));
      write('think', this.think);
    });
  }

  // The switch is there if a chosen model minds it; without a list of models, if it is on. The lengths of contexts are below the
  // answers.
  showModelFacts() {
    const is_known = this.models.checkpoints.size > 0;
    byId('think').hidden = !(is_known || this.think) || !this.models.chosen().some(this.models.mindsThinking);
    for (const view of this.views.flat()) view.showStatistics();
  }

  sendBox() {
    const box = byId('message');
    const text = box.value.trim();
    if (text === '' || this.isRunning()) return;
    box.value = '';
    write('draft', '', 'tab');
    fitHeight(box);
    this.send(text);
    this.focusBox();
  }

  // Not on a touch screen, where the focus would bring up the keyboard over the answer.
  focusBox() {
    if (!matchMedia('(pointer: coarse)').matches) byId('message').focus();
  }

  // Asks a question: a new one at the end, or another version of an earlier one.
  send(question, index = this.conversation.turns.length) {
    const names = this.models.chosen();
    const {turns} = this.conversation;
    const turn = {question, lanes: names.map((model) => ({model, messages: []}))};
    this.conversation.models = names;
    if (index < turns.length) addVersion(turns, index, turn);
    else turns.push(turn);
    names.forEach((_, lane) => this.write(index, lane));
    this.keep();
    this.render();
    this.scrollToEnd();
  }

  // -- writing an answer

  // Writes the next message of a lane, or continues its last one.
  async write(turn_index, lane_index, {continues = false} = {}) {
    const {conversation} = this;
    const turn = conversation.turns[turn_index];
    const lane = turn.lanes[lane_index];
    const messages = messagesOf(conversation, lane_index, conversation.turns.slice(0, turn_index + 1));
    if (continues) messages.pop();
    else lane.messages.push({role: 'assistant', content: ''});
    const message = lane.messages.at(-1);
    const controller = new AbortController();
    this.running.set(lane_index, {controller, turn_index});
    this.showRunning();
    announce(t('answering'));
    const request = {model: lane.model, messages, tools: conversation.tools, think: this.think && this.models.mindsThinking(lane.model)};
    let frame = 0;
    const update = () => {
      frame = 0;
      const view = this.views[turn_index]?.[lane_index];  // may have been replaced since the last call
      if (view && this.conversation === conversation) this.followEnd(() => view.show({live: true}));
      if (Date.now() - this.last_saved > SAVE_EVERY) this.save(conversation);
    };
    const answer = streamAnswer(request, message, controller.signal, () => { frame ||= requestAnimationFrame(update); });
    try {
      update();  // while the model reads
      await answer;
    } catch (error) {
      if (error.name !== 'AbortError') message.info = {...message.info, error: error.message};
    }
    cancelAnimationFrame(frame);
    if (this.running.get(lane_index)?.controller === controller) this.running.delete(lane_index);
    this.finish(conversation, message, () => this.views[turn_index][lane_index]);
  }

  finish(conversation, message, view) {
    // A conversation that was deleted while its answer was being written is kept nowhere.
    const is_kept = this.conversation === conversation || loadConversation(conversation.id) !== null;
    if (is_kept) this.keep(conversation);
    // A version that is not shown any more has no view.
    const is_shown = conversation.turns.some((turn) => turn.lanes.some((lane) => lane.messages.includes(message)));
    if (this.conversation !== conversation || !is_shown) return;
    this.followEnd(() => view().show({live: false}));
    this.showRunning();
    if (message.content) announce(t('answered', message.content));
    if (message.tool_calls && byId('message').value === '') view().root.querySelector('.call textarea')?.focus();
  }

  keep(conversation = this.conversation) {
    this.save(conversation);
    this.onkept(conversation);
  }

  // If another tab has changed the conversation meanwhile, both stay.
  save(conversation) {
    const kept = loadConversation(conversation.id);
    const is_another = kept !== null && kept.changed !== conversation.changed;
    if (is_another) conversation.id = newId();
    const changed = this.last_saved = Date.now();
    const is_kept = keepConversation({...conversation, changed});
    if (is_kept) conversation.changed = changed;
    if (!is_kept || is_another) notify(t(is_kept ? 'bothKept' : 'storageFull'));
    if (is_another) this.onkept(conversation);
  }

  // -- what the user does with earlier messages

  actionsOf(turn_index, lane_index) {
    const {turns} = this.conversation;
    const {question, lanes} = turns[turn_index];
    const lane = lanes[lane_index];
    const whenIdle = (act) => (...values) => {
      if (this.isRunning()) return;
      act(...values);
      this.focusBox();  // the button that had the focus is gone
    };
    const regenerate = () => {
      const empty = {model: this.models.chosen()[lane_index] ?? lane.model, messages: []};
      addVersion(turns, turn_index, {question, lanes: structuredClone(lanes).with(lane_index, empty)});
      this.render();
      this.write(turn_index, lane_index);
    };
    // Text that was written before an error is kept.
    const retry = () => {
      const last = lane.messages.at(-1);
      const continues = last?.role === 'assistant' && Boolean(last.content || last.reasoning_content);
      if (last?.role === 'assistant' && !continues) lane.messages.pop();
      this.write(turn_index, lane_index, {continues});
    };
    return {
      regenerate: whenIdle(regenerate),
      continue: whenIdle(() => this.write(turn_index, lane_index, {continues: true})),
      retry: whenIdle(retry),
      sendResults: whenIdle((results) => {
        const {tool_calls} = lane.messages.at(-1);
        tool_calls.forEach((call, i) => lane.messages.push({role: 'tool', tool_call_id: call.id, content: results[i] ?? ''}));
        this.write(turn_index, lane_index);
      }),
    };
  }

  // Returns the arrows that lead to the other versions of a turn's question or answer; null if there is one.
  versionsElement(turn_index, of) {
    const {at, numbers} = choicesOf(this.conversation.turns[turn_index])[of];
    if (numbers.length < 2) return null;
    const arrow = (label, step) => iconButton('chevron', t(label), () => this.chooseVersion(turn_index, of, at + step),
      {class: `icon-button ${label}`, disabled: numbers[at + step] === undefined});
    return element('div', {class: 'versions', role: 'group', 'aria-label': t(of === 'question' ? 'questionVersions' : 'answerVersions')},
      arrow('previousVersion', -1), element('span', {}, t('version', at + 1, numbers.length)), arrow('nextVersion', 1));
  }

  chooseVersion(turn_index, of, place) {
    if (this.isRunning()) return;
    const {turns} = this.conversation;
    const {at, numbers} = choicesOf(turns[turn_index])[of];
    showVersion(turns, turn_index, numbers[place]);
    this.keep();
    this.render();
    announce(t('versionShown', place + 1, numbers.length));
    // The same arrow has the focus again, or the other one at the end.
    const [back, forward] = byId('turns').children[turn_index].querySelectorAll(`.${of}-versions button`);
    const wanted = place < at ? [back, forward] : [forward, back];
    wanted.find((button) => !button.disabled).focus();
  }

  // -- showing

  render() {
    const {turns} = this.conversation;
    this.views = turns.map((turn, turn_index) => turn.lanes.map((lane, lane_index) => {
      const view = new LaneView(lane, lane.model || 'MiniMind', this.actionsOf(turn_index, lane_index), this.models.contextOf);
      view.show({live: this.running.get(lane_index)?.turn_index === turn_index});
      return view;
    }));
    byId('turns').replaceChildren(...turns.map((turn, turn_index) => element('section', {class: 'turn'},
      turn.question !== null && this.questionElement(turn, turn_index),
      element('div', {class: turn.lanes.length > 1 ? 'lanes compared' : 'lanes'},
        ...this.views[turn_index].map((view) => view.root)),
      element('div', {class: 'answer-versions'}, this.versionsElement(turn_index, 'answer')))));
    byId('turns').classList.toggle('wide', turns.some((turn) => turn.lanes.length > 1));
    byId('welcome').hidden = turns.length > 0;
    this.showRunning();
  }

  questionElement(turn, turn_index) {
    const root = element('article', {class: 'question'});
    const show = () => root.replaceChildren(
      element('h2', {class: 'off-screen'}, t('you')),
      element('div', {class: 'bubble', dir: 'auto'}, turn.question),
      iconButton('edit', t('edit'), () => { if (!this.isRunning()) edit(); }),
      element('div', {class: 'question-versions'}, this.versionsElement(turn_index, 'question')));
    const edit = () => {
      const area = element('textarea', {'aria-label': t('editLabel'), rows: '1'});
      area.value = turn.question;
      const close = () => {
        show();
        root.querySelector('button').focus();
      };
      const send = () => {
        if (area.value.trim() === '' || this.isRunning()) return;
        this.send(area.value.trim(), turn_index);
        this.focusBox();
      };
      area.addEventListener('input', () => fitHeight(area));
      area.addEventListener('keydown', (event) => {
        if (isSendKey(event)) send();
        else if (event.key !== 'Escape' || event.isComposing) return;
        else close();
        event.preventDefault();
        event.stopPropagation();
      });
      root.replaceChildren(element('div', {class: 'editor'}, area, element('div', {class: 'row'},
        element('p', {class: 'note'}, t('editNote')),
        element('button', {type: 'button', class: 'quiet', onclick: close}, t('cancel')),
        element('button', {type: 'button', class: 'primary', onclick: send}, t('send')))));
      fitHeight(area);
      area.focus();
    };
    show();
    return root;
  }

  showRunning() {
    const running = this.isRunning();
    if (!running && document.activeElement === byId('stop')) this.focusBox();
    byId('stop').hidden = !running;
    byId('send').hidden = running;
    byId('send').disabled = byId('message').value.trim() === '';
    byId('turns').classList.toggle('running', running);
  }

  scrollToEnd() {
    const scroller = byId('chat-scroll');
    scroller.scrollTop = scroller.scrollHeight;
  }

  // Changes what is shown; stays at the end if the end was in view.
  followEnd(change) {
    const scroller = byId('chat-scroll');
    const at_end = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 60;
    change();
    if (at_end) this.scrollToEnd();
  }
}
