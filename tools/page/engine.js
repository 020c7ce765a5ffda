// The engine: the functions of functions.cpp, which emscripten's module exports, with the values of JavaScript.

// What the engine rejects, in words that can be shown.
export class EngineError extends Error {}

const encoder = new TextEncoder();

export class Engine {
  #module;

  // Takes the function that emscripten writes and the bytes of the program.
  static async start(createModule, program) {
    const module = await createModule({wasmBinary: program, print: console.log, printErr: console.warn});
    return new Engine(module);
  }

  constructor(module) {
    this.#module = module;
  }

  // Creates a file for the engine, with its folders. Returns a function write(bytes, offset).
  createFile(path, size) {
    const {FS} = this.#module;
    FS.mkdirTree(path.slice(0, path.lastIndexOf('/')) || '/');
    FS.writeFile(path, '');
    FS.truncate(path, size);
    return (bytes, offset) => {
      const file = FS.open(path, 'r+');
      FS.write(file, bytes, 0, bytes.length, offset);
      FS.close(file);  // else its memory is not free once it is removed
    };
  }

  // Removes a folder of files, whose memory is free then.
  removeFolder(path) {
    const {FS} = this.#module;
    if (!FS.analyzePath(path).exists) return;
    for (const name of FS.readdir(path)) {
      if (name === '.' || name === '..') continue;
      const inner = `${path}/${name}`;
      if (FS.isDir(FS.stat(inner).mode)) this.removeFolder(inner);
      else FS.unlink(inner);
    }
    FS.rmdir(path);
  }

  // Has the engine read a small file from its own memory, where use(address) finds it.
  provide(path, bytes, use) {
    return this.#withBytes(bytes, (at) => {
      const give = (name, size) => this.#withText(name, (name_at) => this.#module._engine_provide(name_at, at, size));
      give(path, bytes.length);
      try {
        return use(at);
      } finally {
        give('', 0);
      }
    });
  }

  // Gives a program that has just started the memory of one that has loaded a model, as write_memory.mjs has written it.
  restore(bytes) {
    const memory = this.#module.HEAPU8;
    const [fixed, started, count] = new Uint32Array(bytes.buffer, 0, 3);
    const runs = new Uint32Array(bytes.buffer, 12, 2 * count);
    memory.fill(0, fixed, started + (1 << 16));  // what starting left here may be of another length than there
    for (let i = 0, from = 12 + runs.byteLength; i < runs.length; i += 2) {
      const size = runs[i + 1] - runs[i];
      memory.set(bytes.subarray(from, from + size), runs[i]);
      from += size;
    }
  }

  // Loads a checkpoint: {path, loras, rope_scaling}. Returns its name. Throws an EngineError.
  load(model) {
    return this.#text(this.#call('engine_load', JSON.stringify(model)));
  }

  // Returns the JSON of /v1/models.
  models() {
    return this.#text(this.#module._engine_models());
  }

  // Starts an answer to a POST of this path and JSON; step() gives its events.
  ask(answer, path, body) {
    const {_engine_ask} = this.#module;
    this.#text(this.#withText(path, (path_at) => this.#withText(body, (body_at) => _engine_ask(answer, path_at, body_at))));
  }

  stop(answer) {
    this.#module._engine_stop(answer);
  }

  // Runs a step, and further ones for so many milliseconds. Returns {more, events}, as PageEngine has them.
  run(milliseconds) {
    const end = performance.now() + milliseconds;
    let more;
    do more = Boolean(this.#module._engine_step()); while (more && performance.now() < end);
    return {more, events: JSON.parse(this.#text(this.#module._engine_events()))};
  }

  // Returns a row of logits for each token. For tests.
  logits(model, tokens) {
    const module = this.#module;
    const ids = new Uint8Array(Int32Array.from(tokens).buffer);
    const at = this.#withBytes(ids, (ids_at) => this.#call('engine_logits', JSON.stringify(model), ids_at, tokens.length));
    if (!at) throw new EngineError(this.#text(true));
    return (count) => module.HEAPF32.slice(at / 4, at / 4 + count);
  }

  // The memory of the engine in bytes.
  get memory() {
    return this.#module.HEAPU8.length;
  }

  #call(name, text, ...values) {
    return this.#withText(text, (at) => this.#module[`_${name}`](at, ...values));
  }

  #withText(text, use) {
    return this.#withBytes(encoder.encode(`${text}\0`), use);
  }

  #withBytes(bytes, use) {
    const at = this.#module._malloc(bytes.length);
    if (!at) throw new EngineError('the memory is full');
    this.#module.HEAPU8.set(bytes, at);
    try {
      return use(at);
    } finally {
      this.#module._free(at);
    }
  }

  // Returns the text that the last function left; throws it if the function failed.
  #text(succeeded) {
    const text = this.#module.UTF8ToString(this.#module._engine_text());
    if (!succeeded) throw new EngineError(text);
    return text;
  }
}
