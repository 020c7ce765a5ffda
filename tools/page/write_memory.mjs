// Writes the memory that the program has once it has loaded a model, from which the page starts without loading it:
//   node write_memory.mjs PROGRAM.JS MODEL.GGUF OUT.MEMORY
// See restore() in engine.js. What the program itself has in the same places is left out, and so are zeros.

import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {basename, resolve} from 'node:path';

const [program, model, out] = process.argv.slice(2).map((path) => resolve(path));
const BLOCK = 256;  // bytes that are left out, or not

const source = readFileSync(new URL('engine.js', import.meta.url), 'utf8');
const {Engine} = await import(`data:text/javascript,${encodeURIComponent(source)}`);
const bytes = readFileSync(program.replace(/\.js$/, '.wasm'));

const lengthOf = (memory) => memory.findLastIndex((byte) => byte !== 0) + 1;

// The memory of a program that has not run.
const imports = {};
const code = new WebAssembly.Module(bytes);
for (const {module, name} of WebAssembly.Module.imports(code)) (imports[module] ??= {})[name] = () => 0;
const own = Object.values(new WebAssembly.Instance(code, imports).exports).find((value) => value instanceof WebAssembly.Memory);
const fixed = new Uint8Array(own.buffer);

let heap;
const engine = await Engine.start(async (options) => {
  const module = await createRequire(import.meta.url)(program)(options);
  heap = () => module.HEAPU8;
  return module;
}, bytes);
const started = lengthOf(heap());
const file = readFileSync(model), name = `/${basename(model)}`;
engine.provide(name, file, (at) => {
  engine.load({path: name});
  heap().fill(0, at, at + file.length);  // it is given back
});
const memory = heap();
if (memory.length !== fixed.length) throw new Error(`${model}: needs more than the ${fixed.length} bytes that the program starts with`);

const runs = [];
for (let at = 0; at < memory.length; at += BLOCK) {
  if (memory.subarray(at, at + BLOCK).every((byte, i) => byte === fixed[at + i])) continue;
  if (runs.at(-1)?.end === at) runs.at(-1).end = at + BLOCK;
  else runs.push({at, end: at + BLOCK});
}
const header = Uint32Array.of(lengthOf(fixed), started, runs.length, ...runs.flatMap(({at, end}) => [at, end]));
writeFileSync(out, Buffer.concat([header, ...runs.map(({at, end}) => memory.subarray(at, end))].map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength))));
