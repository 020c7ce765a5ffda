// Requests to the server that sent this page, relative to its address: a proxy may add a prefix. Failures become a ServerError
// whose message can be shown.

import {t} from './language.js';
import {askForKey, storedKey} from './key_box.js';
import {request} from './transport.js';

export class ServerError extends Error {}

// Returns the entries of /v1/models. Unless `asks`, a missing key is an error that the user is not asked about.
export async function listModels({asks = true} = {}) {
  const body = await (await send('v1/models', {}, asks)).json().catch(() => null);
  if (!Array.isArray(body?.data)) throw new ServerError(t('badAnswer'));
  return body.data.filter((model) => typeof model?.id === 'string');
}

// Sends a request whose answer is one JSON object, and returns it. The signal stops it, which throws an AbortError.
export async function postJson(path, body, signal) {
  const answer = await send(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, signal, body: JSON.stringify(body)});
  const json = await answer.json().catch((error) => { throw error.name === 'AbortError' ? error : new ServerError(t('badAnswer')); });
  if (typeof json !== 'object' || json === null) throw new ServerError(t('badAnswer'));
  return json;
}

// Sends a request whose answer is streamed; yields each chunk, with the `time` of it. The signal stops it, which throws an AbortError.
export async function* streamChunks(path, body, signal) {
  const answer = await send(path, {
    method: 'POST', headers: {'Content-Type': 'application/json'}, signal,
    body: JSON.stringify({...body, stream: true, stream_options: {include_usage: true}}),
  });
  const events = new EventReader();
  const decoder = new TextDecoder();  // keeps a character whose bytes arrive in two pieces
  const reader = answer.body.getReader();
  try {
    for (;;) {
      const {done, value} = await reader.read().catch((error) => { throw readingFailed(error); });
      if (done) throw new ServerError(t('brokenOff'));
      const {time = performance.now()} = value;  // the engine's own time, in the page in one file
      for (const data of events.read(decoder.decode(value, {stream: true}))) {
        if (data === '[DONE]') return;
        yield {...parseChunk(data), time};
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Splits server-sent events into their data, whatever the pieces in which they arrive.
export class EventReader {
  #pieces = [];  // of the line that has not ended
  #data = [];

  read(text) {
    this.#pieces.push(text);
    if (!text.includes('\n')) return [];
    const lines = this.#pieces.join('').split('\n');
    this.#pieces = [lines.pop()];
    const complete = [];
    for (const line of lines) {
      const content = line.endsWith('\r') ? line.slice(0, -1) : line;
      if (content.startsWith('data:')) this.#data.push(content.slice(content[5] === ' ' ? 6 : 5));
      if (content !== '' || this.#data.length === 0) continue;
      complete.push(this.#data.join('\n'));
      this.#data = [];
    }
    return complete;
  }
}

function readingFailed(error) {
  return error.name === 'AbortError' ? error : new ServerError(t('brokenOff'));
}

function parseChunk(data) {
  let chunk;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new ServerError(t('badAnswer'));
  }
  if (chunk?.error) throw new ServerError(t('failed', chunk.error.message ?? data));
  return chunk;
}

// Returns an answer with status 200. If the server requires a key, the user is asked for it.
async function send(path, options, asks = true) {
  for (let asked = false;; asked = true) {
    const key = storedKey();
    const headers = {...options.headers, ...(key && {Authorization: `Bearer ${key}`})};
    let answer;
    try {
      answer = await request(path, {...options, headers});
    } catch (error) {
      throw error.name === 'AbortError' ? error : new ServerError(t('unreachable'));
    }
    if (answer.ok) return answer;
    if (answer.status !== 401) throw await failure(answer);
    if (!asks || !await askForKey(asked || Boolean(key))) throw new ServerError(t('keyMissing'));
  }
}

async function failure(answer) {
  if (answer.status === 429 || answer.status === 503) {
    const seconds = Number.parseInt(answer.headers.get('Retry-After'), 10);
    return new ServerError(Number.isNaN(seconds) ? t('busySoon') : t('busy', seconds));
  }
  const message = (await answer.json().catch(() => null))?.error?.message;
  if (typeof message !== 'string') return new ServerError(t('statusError', answer.status));
  return new ServerError(t(answer.status < 500 ? 'rejected' : 'failed', message));
}
