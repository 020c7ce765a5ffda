// How a request of the page in one file reaches the engine: through a worker, in place of a server.

import {t} from './language.js';
import {current, startWorker} from './launch.js';

const encoder = new TextEncoder();

let next_id = 0;
let waiting = new Map();  // by id: {resolve, reject, onread} of actions
let answers = new Map();  // by id: the answers that are being written

const end = () => current.worker.postMessage({action: 'end', reason: t('truncated')});
if (document.readyState === 'loading') addEventListener('DOMContentLoaded', end);
else end();

let started;  // a promise, until the worker has started

function hear() {
  current.worker.onmessage = ({data}) => take(data);
  current.worker.onerror = (event) => restart(event.message);
  started = act('started').then((models) => {
    started = null;
    return models;
  });
  current.said.forEach(take);
}

hear();

// Ends a worker whose engine has failed, and starts another one, which has the poet alone, unless this one has not even started.
function restart(reason) {
  current.worker.onmessage = current.worker.onerror = null;  // the error that a worker ends with also comes after it is terminated
  current.worker.terminate();
  const message = started ? reason : t('broken', reason);
  for (const {reject} of waiting.values()) reject(new Error(message));
  for (const answer of answers.values()) answer.fail(message);
  waiting = new Map();
  answers = new Map();
  if (started) return;
  startWorker();
  hear();
  started.then(() => dispatchEvent(new CustomEvent('minimind-models', {detail: {}})), () => {});
}

function act(action, fields = {}, onread = () => {}) {
  const id = next_id++;
  current.worker.postMessage({action, id, ...fields});
  return new Promise((resolve, reject) => waiting.set(id, {resolve, reject, onread}));
}

function take({id, value, error, read, size, events, at, broken}) {
  if (broken !== undefined) return restart(broken);
  if (events) {
    for (const event of events) answers.get(event[0])?.take(event, at - performance.timeOrigin);
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
    const models = started && await started;  // else the engine hears of it before anything else is done
    if (path === 'v1/models') return new Response(models ?? await act('models'));
  } catch (error) {
    return failure(error.message);
  }
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const id = next_id++;
    answers.set(id, new Answer(id, resolve, reject, signal));
    current.worker.postMessage({action: 'ask', id, path, body});
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

  take([, kind, ...values], time) {
    if (kind === 'send') {
      const [status, body] = values;
      answers.delete(this.id);
      this.resolve(new Response(body, {status}));
    } else if (kind === 'start') {
      const stream = new ReadableStream({start: (controller) => { this.controller = controller; }, cancel: () => this.stop()});
      this.resolve(new Response(stream));
    } else if (kind === 'write') {
      this.controller.enqueue(Object.assign(encoder.encode(values[0]), {time}));
    } else {
      answers.delete(this.id);
      this.controller.close();
    }
  }

  // Has the engine stop, whatever it still sends.
  stop(reason) {
    if (!answers.delete(this.id)) return;
    current.worker.postMessage({action: 'stop', of: this.id});
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
