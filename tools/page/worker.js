// The worker of the page in one file, which runs the engine, so that the page never waits for it. Its messages:
//   {action, id, ...}                 what the page wants; id is a number of the page's, or missing
//   {id, value}, {id, error}          what became of it
//   {id, read, size}                  bytes of the files of a checkpoint so far
//   {events, at}                      of answers, as PageEngine has them: their numbers are those of the actions; the time
//   {broken}                          the engine has failed: this worker does no more

import {Engine} from './engine.js';
import {Unpacker} from './packed.js';

const PIECE = 1 << 24;        // bytes of a file that are read at once
const RUN = 16;               // milliseconds of steps between two looks at messages, after which the page gets the events
const MOST = 2_000_000_000;   // bytes of files
const FIRST_REQUEST = '{"messages": [{"role": "user", "content": "诗"}], "max_tokens": 2, "stream": true}';

// What the page has, and the name of its model: a file, or the memory of a program that has read one.
const program = new Unpacker(), inside = new Unpacker();
let inside_name;
let engine;
let starting;
let running = false;
let run_time;                 // milliseconds of the next run: the first ones are short, so that the start of an answer is seen at once
let loading = Promise.resolve();

// A message to oneself comes back at once, where a timer would wait for 4 ms.
const turns = new MessageChannel();
turns.port1.onmessage = () => guarded(run);

const ACTIONS = {
  start() {
    starting = start();
    starting.catch(() => {});  // 'started' says it
  },
  started: () => starting,
  // Without a name, of the program.
  piece({name, text}) {
    if (name) inside_name = name;
    (name ? inside : program).take(text);
  },
  end({reason}) {
    for (const unpacker of [program, inside]) unpacker.end(new Error(reason));
  },
  // One after the other, because each takes memory for its files.
  load({id, files, model}) {
    loading = loading.catch(() => {}).then(() => load(id, files, model, (read, size) => postMessage({id, read, size})));
    return loading;
  },
  models: () => engine.models(),
  ask({id, path, body}) {
    engine.ask(id, path, body);
    if (running) return;
    running = true;
    run_time = 0;
    turns.port2.postMessage(null);
  },
  stop: ({of}) => engine.stop(of),
};

// Starts the engine with the model that the page has, whose pieces come meanwhile. Returns its models, as models() has them.
// createMinimind is emscripten's.
async function start() {
  engine = await Engine.start(createMinimind, await program.bytes);
  const bytes = await inside.bytes;
  if (/\.gguf$/i.test(inside_name)) engine.provide(`/${inside_name}`, bytes, () => engine.load({path: `/${inside_name}`}));
  else engine.restore(bytes);
  // Browsers compile a function when it is first called: those of an answer now, while the page is busy with itself.
  setTimeout(() => ACTIONS.ask({id: -1, path: 'v1/chat/completions', body: FIRST_REQUEST}));
  return engine.models();
}

// Gives the files to the engine, in a folder of this name, and has it load the checkpoint that they are. Paths are
// relative; that of the folder itself is ''. A model whose file has a usual name has that of its folder.
async function load(id, files, {path, ...settings}, onread) {
  const folder = `/${id}/checkpoint`;
  const size = files.reduce((sum, {file}) => sum + file.size, 0);
  if (size > MOST) throw new Error(`${path || 'the folder'}: is ${Math.ceil(size / 1e6)} MB, expected at most ${MOST / 1e6}, which a page can hold`);
  let read = 0;
  try {
    for (const {path: name, file} of files) {
      const write = engine.createFile(`${folder}/${name}`, file.size);
      for (let at = 0; at < file.size; at += PIECE) {
        const bytes = new Uint8Array(await file.slice(at, at + PIECE).arrayBuffer());
        write(bytes, at);
        onread(read += bytes.length, size);
      }
    }
    return engine.load({path: path ? `${folder}/${path}` : folder, ...settings});
  } catch (error) {
    // The user knows the file by its own name.
    if (error.message) error.message = error.message.replaceAll(`${folder}/`, '').replaceAll(folder, 'the folder');
    throw error;
  } finally {
    engine.removeFolder(`/${id}`);
  }
}

function run() {
  const {more, events} = engine.run(run_time);
  run_time = Math.min(RUN, 2 * run_time + 1);
  if (events.length > 0) postMessage({events, at: performance.timeOrigin + performance.now()});
  if (more) turns.port2.postMessage(null);
  else running = false;
}

// Nothing can be done with an engine that ended within a function, as by a fault of its own.
function guarded(action) {
  try {
    return action();
  } catch (error) {
    if (isBroken(error)) postMessage({broken: error.message});
    throw error;
  }
}

const isBroken = (error) => error instanceof WebAssembly.RuntimeError || error instanceof RangeError && !engine;

onmessage = async ({data}) => {
  try {
    postMessage({id: data.id, value: await ACTIONS[data.action](data)});
  } catch (error) {
    if (isBroken(error)) postMessage({broken: error.message});
    else postMessage({id: data.id, error: error.message});
  }
};
