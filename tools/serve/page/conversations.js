// Conversations: their form, where they are kept, and their JSON.
//
//   conversation  {id, title, changed, system, tools, models, turns}
//     models      one name, or two that are compared
//     turn        {question, lanes, versions}: the user's text, for each model {model, messages}, and what versions.js says
//     message     OpenAI's message of an assistant or a tool; `info` has what only the page shows, and is never sent
//
// A conversation that compared two models and no longer does continues with the first lane.

import {t} from './language.js';
import {erase, names, read, write} from './storage.js';
import {allTurns} from './versions.js';

const PREFIX = 'conversation.';
const MOST_NESTED = 100;  // versions in versions of a file: what reads them calls itself

export function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export function newConversation(settings = {}) {
  const {system = '', tools = [], models = []} = settings;
  return {id: newId(), title: '', changed: Date.now(), system, tools, models: [...models], turns: []};
}

// Returns the conversation's title: the given one, or the first line of the first question.
export function titleOf(conversation) {
  const question = conversation.turns.find((turn) => turn.question)?.question ?? '';
  const line = question.trim().split('\n')[0];
  const start = line.slice(0, 60).replace(/[\ud800-\udbff]$/, '');  // half a character is no JSON to other readers
  return conversation.title || (line.length > 60 ? `${start}…` : line) || t('untitled');
}

// Returns all kept conversations, the last changed first.
export function allConversations() {
  const kept = names(PREFIX).map((name) => cleanConversation(read(name))).filter((conversation) => conversation);
  return kept.sort((a, b) => b.changed - a.changed);
}

export const loadConversation = (id) => cleanConversation(read(PREFIX + id));
export const keepConversation = (conversation) => write(PREFIX + conversation.id, conversation);
export const eraseConversation = (id) => erase(PREFIX + id);

// Whether the title or a message of any version has the text, regardless of case.
export function matches(conversation, text) {
  const wanted = text.trim().toLowerCase();
  if (titleOf(conversation).toLowerCase().includes(wanted)) return true;
  return allTurns(conversation.turns).some((turn) => [turn.question, ...turn.lanes.flatMap((lane) => lane.messages)
    .map((message) => message.content)].some((content) => content?.toLowerCase().includes(wanted)));
}

// Returns the messages that a request of this lane sends: those up to and including the given turn.
export function messagesOf(conversation, lane, turns = conversation.turns) {
  const messages = conversation.system.trim() ? [{role: 'system', content: conversation.system}] : [];
  for (const turn of turns) {
    if (turn.question !== null) messages.push({role: 'user', content: turn.question});
    const answers = (turn.lanes[lane] ?? turn.lanes[0])?.messages ?? [];
    messages.push(...answers.filter(isWorthSending).map(({info, ...message}) => message));
  }
  return messages;
}

// An answer that failed before its first token is not part of the conversation.
function isWorthSending(message) {
  return message.role === 'tool' || message.content !== '' || message.reasoning_content || message.tool_calls?.length > 0;
}

// Returns an object whose "messages" every OpenAI client and `minimind chat --load` understand.
// Other versions are next to them: of turn number `turn` those in `others`, each with its own messages, before and after `at`.
export function exportConversation(conversation) {
  return {
    title: titleOf(conversation), models: conversation.models,
    ...(conversation.tools.length > 0 && {tools: conversation.tools}),
    ...exportTurns(conversation),
  };
}

function exportTurns({system = '', turns}) {
  const compared = turns.some((turn) => turn.lanes.length > 1);
  const with_versions = turns.map((turn, i) => [turn.versions, i]).filter(([versions]) => versions?.others.length > 0);
  const versions = with_versions.map(([{at, others}, turn]) => ({turn, at, others: others.map((hidden) => ({
    models: hidden[0].lanes.map((lane) => lane.model), ...exportTurns({turns: hidden}),
  }))}));
  return {
    messages: messagesOf({system, turns}, 0),
    ...(compared && {compared_messages: messagesOf({system, turns}, 1)}),
    ...(versions.length > 0 && {versions}),
  };
}

// Reads what exportConversation wrote, a list of such objects, or a list of messages; also MiniMind's {"conversations": [...]}.
// Throws an Error that says in words what is wrong.
export function importConversations(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(t('notJson'));
  }
  const is_list_of_objects = Array.isArray(value) && value.length > 0 && !value.some((item) => item?.role);
  return is_list_of_objects ? value.map(importOne) : [importOne(value)];
}

function importOne(value) {
  const list = Array.isArray(value) ? value : value?.messages ?? value?.conversations;
  if (!Array.isArray(list)) throw new Error(t('noMessages'));
  const conversation = newConversation({tools: Array.isArray(value.tools) ? value.tools : []});
  conversation.title = typeof value.title === 'string' ? value.title : '';
  importTurns(conversation, value, list);
  return conversation;
}

function importTurns(conversation, value, list, depth = 0) {
  conversation.models = Array.isArray(value.models) ? value.models.filter((model) => typeof model === 'string').slice(0, 2) : [];
  addLane(conversation, list, 0);
  if (Array.isArray(value.compared_messages)) addLane(conversation, value.compared_messages, 1);
  if (depth > MOST_NESTED || !Array.isArray(value.versions ?? [])) throw new Error(t('badVersions'));
  for (const versions of value.versions ?? []) {
    const shown = conversation.turns[versions?.turn];
    const is_whole = shown && !shown.versions && areVersions(versions, (hidden) => Array.isArray(hidden?.messages));
    if (!is_whole) throw new Error(t('badVersions'));
    shown.versions = {at: versions.at, others: versions.others.map((hidden) => importVersion(hidden, depth + 1))};
  }
  return conversation.turns;
}

// A version of which no message is worth sending has an answer that failed and no question.
function importVersion(value, depth) {
  const turns = importTurns({system: '', turns: []}, value, value.messages, depth);
  return turns.length > 0 ? turns : [{question: null, lanes: []}];
}

function areVersions(versions, is_version) {
  return Array.isArray(versions?.others) && versions.others.every(is_version) && Number.isInteger(versions.at) && versions.at >= 0 &&
    versions.at <= versions.others.length;
}

// Sorts messages into turns. The second lane repeats the questions of the first one.
function addLane(conversation, list, lane) {
  const turns = conversation.turns;
  let at = -1;
  list.forEach((raw, i) => {
    const message = cleanMessage(raw);
    if (!message) throw new Error(t('badMessage', i + 1));
    if (message.role === 'system') {
      conversation.system ||= message.content;
    } else if (message.role === 'user') {
      if (lane === 0 || ++at >= turns.length) turns.push({question: message.content, lanes: []});
    } else {
      if (turns.length === 0) turns.push({question: null, lanes: []});
      const turn = lane === 0 ? turns.at(-1) : turns[Math.max(at, 0)];
      while (turn.lanes.length <= lane) turn.lanes.push({model: conversation.models[turn.lanes.length] ?? '', messages: []});
      const {messages} = turn.lanes[lane], last = messages.at(-1);
      const continues = message.role === 'tool' && message.tool_call_id && last?.tool_call_id === message.tool_call_id;
      if (continues) last.content += `\n${message.content}`;  // a result in several messages
      else messages.push(message);
    }
  });
}

const ROLES = ['system', 'user', 'assistant', 'tool'];

// Returns the message with the fields that the page knows, or null if it is not a message.
function cleanMessage(raw) {
  const content = textOf(raw?.content);
  if (!ROLES.includes(raw?.role) || content === null) return null;
  const message = {role: raw.role, content};
  if (raw.role === 'tool') message.tool_call_id = typeof raw.tool_call_id === 'string' ? raw.tool_call_id : '';
  if (raw.role !== 'assistant') return message;
  if (typeof raw.reasoning_content === 'string' && raw.reasoning_content) message.reasoning_content = raw.reasoning_content;
  if (Array.isArray(raw.tool_calls) && raw.tool_calls.length > 0) message.tool_calls = raw.tool_calls.map(cleanCall);
  return message;
}

// Content may be a string, null, or a list of parts, of which those of text count.
function textOf(content) {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content) || !content.every((part) => part?.type === 'text' && typeof part.text === 'string')) return null;
  return content.map((part) => part.text).join('');
}

function cleanCall(call) {
  const {name = '', arguments: given = '{}'} = call?.function ?? call ?? {};
  return {
    id: typeof call?.id === 'string' ? call.id : newId(), type: 'function',
    function: {name: String(name), arguments: typeof given === 'string' ? given : JSON.stringify(given)},
  };
}

// What the browser keeps may be of another version of the page: returns the conversation if it has the form above, or null.
function cleanConversation(kept) {
  const is_text = (value) => typeof value === 'string';
  const is_call = (call) => is_text(call?.function?.name) && is_text(call.function.arguments);
  const is_number = (value) => typeof (value ?? 0) === 'number';
  const is_message = (message) => ['assistant', 'tool'].includes(message?.role) && is_text(message.content) &&
    is_text(message.reasoning_content ?? '') && Array.isArray(message.tool_calls ?? []) && (message.tool_calls ?? []).every(is_call) &&
    is_number(message.info?.first) && is_number(message.info?.speed);
  const is_lane = (lane) => is_text(lane?.model) && Array.isArray(lane.messages) && lane.messages.every(is_message);
  const is_version = (turns) => Array.isArray(turns) && turns.length > 0 && turns.every(is_turn);
  const is_turn = (turn) => (turn?.question === null || is_text(turn?.question)) && Array.isArray(turn.lanes) &&
    turn.lanes.every(is_lane) && (turn.versions === undefined || areVersions(turn.versions, is_version));
  const valid = is_text(kept?.id) && is_text(kept.title) && is_text(kept.system) && Array.isArray(kept.tools) &&
    Array.isArray(kept.models) && kept.models.every(is_text) && Array.isArray(kept.turns) && kept.turns.every(is_turn);
  return valid ? kept : null;
}
