// The package for people who build pages: the engine in the thread that imports it. bundle.py makes minimind.mjs of it.

import {Engine, EngineError} from './engine.js';

const RUN = 16;  // milliseconds of steps, after which other work of the thread has its turn

// A message comes back at once, where a timer would wait for 4 ms.
const turn = () => new Promise((resolve) => {
  const {port1, port2} = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    resolve();
  };
  port2.postMessage(null);
});

async function readProgram() {
  const address = new URL('./minimind.wasm', import.meta.url);
  if (address.protocol === 'file:') return (await import('node:fs/promises')).readFile(address);
  const response = await fetch(address);
  if (!response.ok) throw new EngineError(`${address}: has status ${response.status}, expected the program`);
  return new Uint8Array(await response.arrayBuffer());
}

export async function load(checkpoint, {program, ...settings} = {}) {
  const is_one = checkpoint instanceof Uint8Array || checkpoint instanceof ArrayBuffer;
  const files = Object.entries(is_one ? {'model.gguf': checkpoint} : checkpoint);
  const [file, other] = files.map(([name]) => name).filter((name) => /\.(pth|gguf)$/i.test(name));
  if (other) throw new EngineError(`${file} and ${other} are two checkpoints, expected one`);
  const engine = await Engine.start(createMinimind, program ?? await readProgram());
  for (const [name, bytes] of files) engine.createFile(`/checkpoint/${name}`, bytes.byteLength)(new Uint8Array(bytes), 0);
  try {
    return new Model(engine, engine.load({path: file ? `/checkpoint/${file}` : '/checkpoint', ...settings}));
  } finally {
    engine.removeFolder('/checkpoint');
  }
}

class Model {
  #engine;
  #events = new Map();  // of each answer that is not finished, those that nobody has taken
  #next = 0;

  constructor(engine, name) {
    this.#engine = engine;
    this.name = name;
  }

  async* generate(request) {
    for await (const {choices: [choice]} of this.chunks(request)) {
      if (choice?.index > 0) throw new EngineError('the request has several answers, expected one; chunks() has the index of each');
      const text = choice?.delta?.content ?? choice?.text;
      if (text) yield text;
    }
  }

  async* chunks(request) {
    const body = typeof request === 'string' ? {prompt: request} : request;
    const path = body.messages ? 'v1/chat/completions' : 'v1/completions';
    for await (const piece of this.#answer(path, {...body, stream: true})) {
      for (const event of piece.split('\n\n').filter(Boolean)) {
        const data = event.slice('data: '.length);
        if (data === '[DONE]') return;
        const chunk = JSON.parse(data);
        if (chunk.error) throw new EngineError(chunk.error.message);
        yield chunk;
      }
    }
  }

  async trace(request) {
    const body = typeof request === 'string' ? {prompt: request} : request;
    for await (const answer of this.#answer('v1/inside', body)) return JSON.parse(answer);
  }

  // Yields the pieces of an answer. One that is left before its end is stopped.
  async* #answer(path, body) {
    const id = this.#next++;
    const events = [];
    this.#events.set(id, events);
    try {
      this.#engine.ask(id, path, JSON.stringify(body));
      for (;;) {
        if (events.length === 0) this.#run();
        while (events.length > 0) {
          const [kind, ...values] = events.shift();
          if (kind === 'finish') return;
          if (kind === 'send' && values[0] !== 200) throw new EngineError(JSON.parse(values[1]).error.message);
          if (kind !== 'start') yield values.at(-1);
          if (kind === 'send') return;
        }
        await turn();
      }
    } finally {
      this.#events.delete(id);
      this.#engine.stop(id);
    }
  }

  // Runs steps of all answers.
  #run() {
    for (const [id, ...event] of this.#engine.run(RUN).events) this.#events.get(id)?.push(event);
  }
}
