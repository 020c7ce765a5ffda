// Streams one answer of a chat into a message.

import {streamChunks} from './server.js';
import {samplingFields} from './settings.js';

// Appends to the message and calls `onchange` after each chunk. `messages` are those before it; a message that has text
// already is continued. At the end message.info has finish, seconds to the first token, tokens per second and token counts.
// Throws a ServerError, or an AbortError if the signal stops it; the text so far stays in the message.
export async function streamAnswer({model, messages, tools, think}, message, signal, onchange) {
  const continues = message.content !== '' || Boolean(message.reasoning_content);
  const {info, ...so_far} = message;
  const body = {
    ...(model && {model}), messages: continues ? [...messages, so_far] : messages,
    ...(tools.length > 0 && {tools}), chat_template_kwargs: {open_thinking: think}, ...samplingFields(),
    ...(continues && {continue_final_message: true, add_generation_prompt: false}),
  };
  const clock = new Clock();
  const calls_before = message.tool_calls?.length ?? 0;
  message.info = {finish: null};
  try {
    for await (const chunk of streamChunks('v1/chat/completions', body, signal)) {
      if (chunk.usage) clock.usage = chunk.usage;
      const choice = chunk.choices?.[0];
      if (choice?.delta && append(choice.delta, message, calls_before)) clock.token(chunk.time);
      if (choice?.finish_reason) message.info.finish = choice.finish_reason;
      if (choice?.finish_reason && choice.finish_reason !== 'length') dropBrokenCalls(message);
      onchange();
    }
  } catch (error) {
    if (error.name === 'AbortError') message.info.finish = 'stopped';
    throw error;
  } finally {
    Object.assign(message.info, clock.summary());
  }
}

// What started like a call and turned out to be none is in the content.
function dropBrokenCalls(message) {
  const calls = (message.tool_calls ?? []).filter((call) => {
    try {
      return Boolean(JSON.parse(call.function.arguments));
    } catch {
      return false;
    }
  });
  if (calls.length > 0) message.tool_calls = calls;
  else delete message.tool_calls;
}

// Adds a delta to the message. Returns whether it had text.
function append(delta, message, calls_before) {
  if (delta.reasoning_content) message.reasoning_content = (message.reasoning_content ?? '') + delta.reasoning_content;
  if (delta.content) message.content += delta.content;
  for (const part of delta.tool_calls ?? []) {
    message.tool_calls ??= [];
    const index = calls_before + (part.index ?? 0);
    const call = message.tool_calls[index] ??= {id: '', type: 'function', function: {name: '', arguments: ''}};
    if (part.id) call.id = part.id;
    if (part.function?.name) call.function.name += part.function.name;
    if (part.function?.arguments) call.function.arguments += part.function.arguments;
  }
  return Boolean(delta.reasoning_content || delta.content || delta.tool_calls?.length);
}

const LEAST_SECONDS = 0.1;  // chunks that come in less time are often read together

// Measures an answer. The speed is that of the tokens after the first one, whose time has the prompt in it.
export class Clock {
  usage = null;
  #start = performance.now();
  #first = null;
  #last = null;
  #chunks = 0;

  token(time) {
    this.#last = time;
    this.#first ??= this.#last;
    ++this.#chunks;
  }

  // Without the server's usage, as after a stop, a chunk counts as a token.
  summary() {
    const tokens = this.usage?.completion_tokens ?? this.#chunks;
    const seconds = (this.#last - this.#first) / 1000;
    return {
      ...(this.#first !== null && {first: (this.#first - this.#start) / 1000}),
      ...(tokens > 1 && seconds >= LEAST_SECONDS && {speed: (tokens - 1) / seconds, estimated: !this.usage}),
      ...(this.usage && {context: this.usage.prompt_tokens + this.usage.completion_tokens}),
    };
  }
}
