// How a request of the page in one file reaches the engine: through a worker, in place of a server.

import {t} from './language.js';

const encoder = new TextEncoder();

// The only text that the page runs as a script beside itself is its own worker.
const policy = globalThis.trustedTypes?.createPolicy('minimind-worker', {createScriptURL: (address) => address});

let worker;
let next_id = 0;
let waiting = new Map();  // by id: {resolve, reject, onread} of actions
let answers = new Map();  // by id: the answers that are being written

// The texts of the program and of the model are read piece by piece, of which each is followed by a script that calls this.
globalThis.takePiece = () => sendPiece(document.currentScript.previousElementSibling);
const sendPiece = ({dataset: {model: name}, textContent: text}) => worker.postMessage({action: 'piece', name, text});
addEventListener('DOMContentLoaded', () => worker.postMessage({action: 'end', reason: t('truncated')}));

function startWorker() {
  const address = URL.createObjectURL(new Blob([document.getElementById('worker').textContent], {type: 'text/javascript'}));
  worker = new Worker(policy ? policy.createScriptURL(address) : address);
  worker.onmessage = ({data}) => take(data);
  worker.onerror = (event) => restart(event.message);
  for (const piece of document.querySelectorAll('[data-program], [data-model]')) sendPiece(piece);
  return act('start').finally(() => URL.revokeObjectURL(address));
}

let started = startWorker();

// Ends a worker whose engine has failed, and starts another one, which has the poet alone.
function restart(reason) {
  worker.terminate();
  const message = t('broken', reason);
  for (const {reject} of waiting.values()) reject(new Error(message));
  for (const answer of answers.values()) answer.fail(message);
  waiting = new Map();
  answers = new Map();
  started = startWorker();
  started.then(() => dispatchEvent(new CustomEvent('minimind-models', {detail: {}})), () => {});
}

function act(action, fields = {}, onread = () => {}) {
  const id = next_id++;
  worker.postMessage({action, id, ...fields});
  return new Promise((resolve, reject) => waiting.set(id, {resolve, reject, onread}));
}

function take({id, value, error, read, size, events, broken}) {
  if (broken !== undefined) return restart(broken);
  if (events) {
    for (const event of events) answers.get(event[0])?.take(event);
    return;
  }
  const action = waiting.get(id);
  if (error !== undefined && answers.has(id)) {
    answers.get(id).fail(error);
    return answers.delete(id);
  }
  if (read !== undefined) return action?.onread(read, size);
  waiting.delete(id);
  if (error === undefined) action?.resolve(value);
  else action?.reject(new Error(error));
}

// Loads a checkpoint of files {path, file}; `model` is as PageModel has it. Returns its name. Throws an Error.
export async function loadFiles(files, model, onread) {
  await started;
  return act('load', {files, model}, onread);
}

// Answers as fetch() would: GET v1/models, or a POST.
export async function request(path, {body, signal} = {}) {
  try {
    await started;
    if (path === 'v1/models') return new Response(await act('models'));
  } catch (error) {
    return failure(error.message);
  }
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const id = next_id++;
    answers.set(id, new Answer(id, resolve, reject, signal));
    worker.postMessage({action: 'ask', id, path, body});
  });
}

const errorBody = (message) => JSON.stringify({error: {message}});
const failure = (message) => new Response(errorBody(message), {status: 500});

// One answer, which resolves the promise of its request with a Response.
class Answer {
  constructor(id, resolve, reject, signal) {
    this.id = id;
    this.resolve = resolve;
    this.reject = reject;
    signal?.addEventListener('abort', () => this.stop(signal.reason));
  }

  take([, kind, ...values]) {
    if (kind === 'send') {
      const [status, body] = values;
      answers.delete(this.id);
      this.resolve(new Response(body, {status}));
    } else if (kind === 'start') {
      const stream = new ReadableStream({start: (controller) => { this.controller = controller; }, cancel: () => this.stop()});
      this.resolve(new Response(stream));
    } else if (kind === 'write') {
      this.controller.enqueue(encoder.encode(values[0]));
    } else {
      answers.delete(this.id);
      this.controller.close();
    }
  }

  // Has the engine stop, whatever it still sends.
  stop(reason) {
    if (!answers.delete(this.id)) return;
    worker.postMessage({action: 'stop', of: this.id});
    this.reject(reason);
    if (reason) this.controller?.error(reason);
  }

  // Ends the answer with an error of the engine, as a server would.
  fail(message) {
    this.resolve(failure(message));
    this.controller?.enqueue(encoder.encode(`data: ${errorBody(message)}\n\n`));
    this.controller?.close();
  }
}
