// Tests the engine as the page in one file has it, compiled for WebAssembly, under node:
//   PAGE=build/release/page node --test tests/tools/page/test_program.mjs

import assert from 'node:assert/strict';
import {existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {basename, join, resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {execFileSync} from 'node:child_process';
import {test} from 'node:test';

const ROOT = resolve(import.meta.dirname, '../../..');
const PAGE = resolve(process.env.PAGE ?? join(ROOT, 'build/release/page'));
const PROGRAM = process.env.MINIMIND_PROGRAM ?? join(ROOT, 'minimind');

// Those of the page are modules without a package.
const importPage = (name) => import(`data:text/javascript,${encodeURIComponent(readFileSync(join(ROOT, 'tools/page', name), 'utf8'))}`);
const {Engine} = await importPage('engine.js');
const {Unpacker} = await importPage('packed.js');
const createMinimind = createRequire(import.meta.url)(join(PAGE, 'program.js'));
const program = readFileSync(join(PAGE, 'program.wasm'));

const start = () => Engine.start(createMinimind, program);

// Gives a file or a folder of this machine to the engine.
function give(engine, path, to) {
  if (statSync(path).isDirectory()) {
    for (const name of readdirSync(path)) give(engine, join(path, name), `${to}/${name}`);
  } else {
    const bytes = readFileSync(path);
    engine.createFile(to, bytes.length)(bytes, 0);
  }
}

// Runs the engine until it has answered. Returns {status, body} of a whole answer, or {chunks}.
function answer(engine, body, path = 'v1/chat/completions') {
  engine.ask(1, path, JSON.stringify(body));
  const chunks = [];
  for (;;) {
    const {more, events} = engine.run(0);
    for (const [number, kind, ...values] of events) {
      assert.equal(number, 1);
      if (kind === 'send') return {status: values[0], body: JSON.parse(values[1])};
      if (kind === 'write') chunks.push(...values[0].split('\n\n').filter(Boolean).map((line) => line.slice('data: '.length)));
      if (kind === 'finish') return {chunks};
    }
    assert.ok(more, 'the engine has nothing to do, and there is no end');
  }
}

const textOf = ({chunks}) => chunks.slice(0, -1).map((chunk) => JSON.parse(chunk).choices[0]?.delta?.content ?? '').join('');

async function poet() {
  const engine = await start();
  give(engine, join(PAGE, 'minimind-poet.gguf'), '/poet/minimind-poet.gguf');
  assert.equal(engine.load({path: '/poet/minimind-poet.gguf'}), 'minimind-poet');
  engine.removeFolder('/poet');
  return engine;
}

const POEM = {messages: [{role: 'user', content: '写一首七言绝句，题目：秋夜'}], temperature: 0, max_tokens: 60};

for (const name of readdirSync(join(ROOT, 'tests/golden')).filter((name) => !name.endsWith('.md'))) {
  test(`logits and greedy tokens of ${name} are those of PyTorch`, async () => {
    const folder = join(ROOT, 'tests/golden', name);
    const golden = JSON.parse(readFileSync(join(folder, 'case.json')));
    const file = readFileSync(join(folder, 'logits.npy'));
    const vocab = golden.config.vocab_size;
    const count = golden.tokens.length * vocab;
    const expected = new Float32Array(file.buffer.slice(file.byteOffset + file.length - 4 * count, file.byteOffset + file.length));
    const engine = await start();
    give(engine, folder, '/golden');
    const logits = engine.logits({
      path: existsSync(join(folder, 'model.pth')) ? '/golden/model.pth' : '/golden',
      loras: golden.lora ? [`/golden/${golden.lora}`] : [], rope_scaling: name.endsWith('-yarn') ? 'yarn' : 'none',
    }, golden.tokens)(count);
    const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - logits[i])), 0);
    assert.ok(worst < 2e-4, `the worst difference is ${worst}, expected less than 2e-4`);
    const top = golden.greedy.map((_, i) => {
      const row = logits.subarray((golden.prompt_len - 1 + i) * vocab, (golden.prompt_len + i) * vocab);
      return row.indexOf(row.reduce((most, value) => Math.max(most, value)));
    });
    assert.deepEqual(top, golden.greedy);
  });
}

for (const type of ['f32', 'f16', 'bf16', 'q8_0', 'q4_0', 'q4_1', 'q5_0', 'q5_1', 'q4_k', 'q5_k', 'q6_k', 'iq4_nl']) {
  test(`logits of ${type} are those of the native program`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'page-'));
    const file = join(folder, 'poet.gguf');
    execFileSync(PROGRAM, ['convert', join(ROOT, 'weights/demo/model.pth'), file, '--type', type, '-q']);
    const tokens = [1, 700, 1200, 90, 3000, 41];
    const native = join(folder, 'logits.npy');
    execFileSync(PROGRAM, ['logits', '-q', '-m', file, '--tokens', tokens.join(), '-o', native], {env: {...process.env, ...(process.arch === 'x64' && {MINIMIND_ISA: 'sse2'})}});
    const bytes = readFileSync(native);
    const expected = new Float32Array(bytes.buffer.slice(bytes.byteOffset + bytes.length - 4 * 6400 * tokens.length, bytes.byteOffset + bytes.length));
    const engine = await start();
    give(engine, file, '/model/poet.gguf');
    const logits = engine.logits({path: '/model/poet.gguf'}, tokens)(expected.length);
    rmSync(folder, {recursive: true});
    const worst = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - logits[i])), 0);
    assert.ok(worst < 0.01, `the worst difference is ${worst}, expected less than 0.01`);
  });
}

test('bytes of every length are unpacked as they were packed', async () => {
  // Random ones are not deflated; of several pieces, the first is.
  const lengths = `import base64, bundle, json, random
for n in [*range(1, 40), bundle.PIECE - 1, bundle.PIECE, bundle.PIECE + 1]:
    data = bytes(n // 2 * (n > 99)) + random.Random(n).randbytes(n - n // 2 * (n > 99))
    print(json.dumps([bundle.pack(data), base64.b64encode(data).decode()]))`;
  const output = execFileSync('python3', ['-c', lengths], {env: {...process.env, PYTHONPATH: join(ROOT, 'tools/page')}, maxBuffer: 1 << 24});
  for (const line of output.toString().trimEnd().split('\n')) {
    const [pieces, bytes] = JSON.parse(line);
    const unpacker = new Unpacker();
    for (const piece of pieces) unpacker.take(piece);
    assert.equal(Buffer.from(await unpacker.bytes).toString('base64'), bytes);
  }
});

test('the poet writes what the native program writes', async () => {
  const engine = await poet();
  const native = execFileSync(PROGRAM, ['chat', '-q', '-m', join(PAGE, 'minimind-poet.gguf'), '--greedy', '-n', '60', '-p', POEM.messages[0].content]);
  assert.equal(textOf(answer(engine, {...POEM, stream: true})).trim(), native.toString().trim());
});

test('forty poems in a row take no more memory than four', async () => {
  const engine = await poet();
  const write = (seed) => answer(engine, {messages: [{role: 'user', content: `写一首七言绝句，题目：${'春夏秋冬'[seed % 4]}${'日夜山水雨'[seed % 5]}`}], seed, stream: true});
  for (let seed = 1; seed <= 4; ++seed) write(seed);
  const before = engine.memory;
  for (let seed = 5; seed <= 40; ++seed) write(seed);
  assert.equal(engine.memory, before);
});

test('a stop ends an answer without further events', async () => {
  const engine = await poet();
  engine.ask(7, 'v1/chat/completions', JSON.stringify({...POEM, stream: true}));
  engine.run(0);
  engine.run(0);
  engine.stop(7);
  let steps = 0;
  for (let more = true; more; ++steps) {
    const step = engine.run(0);
    assert.deepEqual(step.events.filter(([number, kind]) => kind === 'write' && steps > 0), []);
    more = step.more;
  }
  assert.ok(steps < 3, `${steps} steps`);
});

test('what is wrong with a request is said', async () => {
  const engine = await poet();
  const {status, body} = answer(engine, {...POEM, temperature: 'warm'});
  assert.equal(status, 400);
  assert.match(body.error.message, /^temperature is "warm", expected /);
  assert.equal(answer(engine, {...POEM, model: 'other'}).status, 404);
});

test('a text that lacks a piece is an error', async () => {
  const unpacker = new Unpacker();
  unpacker.take('100 13 0 !!!!!!!!!!!!!!!!');
  unpacker.end(new Error('truncated'));
  await assert.rejects(unpacker.bytes, /truncated/);
});

test('a piece that is damaged is an error', async () => {
  const unpacker = new Unpacker();
  unpacker.take('100 100 13 ABCDABCDABCDABCD');
  await assert.rejects(unpacker.bytes);
});

test('a file in the memory of the engine is read like another', async () => {
  const engine = await start();
  const bytes = readFileSync(join(PAGE, 'minimind-poet.gguf'));
  assert.equal(engine.provide('/minimind-poet.gguf', bytes, () => engine.load({path: '/minimind-poet.gguf'})), 'minimind-poet');
  assert.equal(textOf(answer(engine, {...POEM, stream: true})), textOf(answer(await poet(), {...POEM, stream: true})));
  assert.throws(() => engine.load({path: '/minimind-poet.gguf'}), /minimind-poet/);
});

test('a dimension of more than 32 bits is not taken for its low bits', async () => {
  const engine = await start();
  const bytes = Uint8Array.from(readFileSync(join(PAGE, 'minimind-poet.gguf')));
  const name = 'token_embd.weight';
  bytes[Buffer.from(bytes.buffer).indexOf(name) + name.length + 8] = 1;  // after the number of dimensions and the low bits
  assert.throws(() => engine.provide('/wide.gguf', bytes, () => engine.load({path: '/wide.gguf'})), /tensor 'token_embd.weight' of /);
});

test('a program with the memory of one that has read the poet writes what that one writes', async () => {
  const engine = await start();
  engine.restore(Uint8Array.from(readFileSync(join(PAGE, 'minimind-poet.memory'))));
  for (let i = 0; i < 2; ++i) assert.equal(textOf(answer(engine, {...POEM, stream: true})), textOf(answer(await poet(), {...POEM, stream: true})));
  give(engine, join(ROOT, 'weights/demo'), '/demo');
  assert.equal(engine.load({path: '/demo/model.pth'}), 'minimind-poet');
});

test('of the checkpoints that are opened, the last two stay, and memory does not grow', async () => {
  const engine = await poet();
  const open = (name) => {
    give(engine, join(PAGE, 'minimind-poet.gguf'), `/${name}.gguf`);
    return engine.load({path: `/${name}.gguf`});
  };
  const names = () => JSON.parse(engine.models()).data.map(({id}) => id);
  for (const name of ['a', 'b', 'c']) assert.equal(open(name), name);
  assert.deepEqual(names(), ['minimind-poet', 'b', 'c']);
  const before = engine.memory;
  engine.ask(1, 'v1/chat/completions', JSON.stringify({...POEM, model: 'b', stream: true}));
  engine.run(0);
  for (const name of ['d', 'e', 'f', 'g']) open(name);
  assert.deepEqual(names(), ['minimind-poet', 'f', 'g']);
  assert.equal(engine.memory, before);
  assert.match(JSON.stringify(engine.run(0).events), /the model was closed/);
});

// An open file keeps its memory after it is removed.
test('files that are removed are closed', async () => {
  let module;
  const engine = await Engine.start(async (options) => module = await createMinimind(options), program);
  const opened = () => module.FS.streams.filter(Boolean).length;
  const before = opened();
  give(engine, join(ROOT, 'weights/demo'), '/demo');
  assert.deepEqual(Buffer.from(module.FS.readFile('/demo/config.json')), readFileSync(join(ROOT, 'weights/demo/config.json')));
  engine.removeFolder('/demo');
  assert.equal(opened(), before);
});

test('the inside of a text is shown', async () => {
  const engine = await poet();
  const {status, body} = answer(engine, {prompt: '夜泊枫桥'}, 'v1/inside');
  assert.equal(status, 200);
  assert.equal(body.tokens.length, body.positions[0].position + 1);
  assert.equal(body.attention.length, body.positions[0].layers.length);
  assert.equal(answer(engine, {prompt: '夜', positions: [9]}, 'v1/inside').status, 400);
  assert.equal(answer(engine, {prompt: '夜'}, 'v1/outside').status, 404);
});

test('the package is a module with the version of the program', async () => {
  const facts = JSON.parse(readFileSync(join(PAGE, 'npm/package.json')));
  assert.ok(execFileSync(PROGRAM, ['--version']).toString().includes(facts.version));
  const {EngineError, load} = await import(pathToFileURL(join(PAGE, 'npm', facts.exports['.'].default)));
  const model = await load(readFileSync(join(PAGE, 'minimind-poet.gguf')));
  const textOfPackage = async (request) => {
    let text = '';
    for await (const piece of model.generate(request)) text += piece;
    return text;
  };
  const expected = textOf(answer(await poet(), {...POEM, stream: true}));
  const line = {prompt: '夜泊枫桥', temperature: 0, max_tokens: 20};
  const [poem, again, continued] = await Promise.all([textOfPackage(POEM), textOfPackage(POEM), textOfPackage(line)]);
  assert.equal(poem, expected);
  assert.equal(again, expected);
  assert.equal(continued, await textOfPackage(line));
  for await (const piece of model.generate(POEM)) {
    assert.ok(expected.startsWith(piece));
    break;  // stops the answer
  }
  assert.equal((await model.trace('夜泊枫桥')).object, 'inside');
  await assert.rejects(textOfPackage({...POEM, temperature: 'warm'}), /^EngineError: temperature is "warm"|^Error: temperature is "warm"/);
  for (const several of [{...POEM, n: 2}, {...line, prompt: ['夜', '秋']}]) await assert.rejects(textOfPackage(several), /has several answers, expected one/);
  await assert.rejects(load(new Uint8Array(9)), EngineError);
  await assert.rejects(load({'a.gguf': new Uint8Array(9), 'b.pth': new Uint8Array(9)}), /^EngineError: a.gguf and b.pth are two|^Error: a.gguf and b.pth are two/);
  const demo = join(ROOT, 'weights/demo');
  const files = Object.fromEntries(readdirSync(demo).map((name) => [name, readFileSync(join(demo, name))]));
  assert.equal((await load(files)).name, 'checkpoint');
});

test('a damaged file is an error in words, and the engine goes on', async () => {
  const engine = await poet();
  const damaged = readFileSync(join(PAGE, 'minimind-poet.gguf'));
  for (const [name, bytes] of [['cut.gguf', damaged.subarray(0, 100000)], ['empty.gguf', damaged.subarray(0, 0)],
    ['text.pth', Buffer.from('<!doctype html><p>Not found')], ['noise.gguf', Buffer.concat([damaged.subarray(0, 24), Buffer.alloc(4000, 0xA5)])]]) {
    give(engine, join(ROOT, 'tests/golden_tokenizer'), '/bad');
    engine.createFile(`/bad/${name}`, bytes.length)(bytes, 0);
    assert.throws(() => engine.load({path: `/bad/${name}`}), (error) => error.message.includes(name), name);
    engine.removeFolder('/bad');
  }
  for (const folder of ['tests/fuzz/gguf', 'tests/fuzz/pth', 'tests/fuzz/safetensors']) {
    for (const name of existsSync(join(ROOT, folder)) ? readdirSync(join(ROOT, folder)) : []) {
      give(engine, join(ROOT, folder, name), `/bad/${basename(name)}`);
      assert.throws(() => engine.logits({path: `/bad/${basename(name)}`}, [0]), /^EngineError|Error/, name);
    }
  }
  assert.notEqual(textOf(answer(engine, {...POEM, stream: true})), '');
});

test('a checkpoint without a tokenizer says what to choose', async () => {
  const engine = await poet();
  give(engine, join(ROOT, 'tests/golden/v3-dense/model.pth'), '/alone/model.pth');
  assert.throws(() => engine.load({path: '/alone/model.pth'}), /has no tokenizer, expected a tokenizer.json; choose both files at once/);
});
