// Bytes in the text of a page, as tools/page/bundle.py writes them: pieces, each of which is
//   all bytes, bytes of this piece, bytes of this piece deflated or 0, and then 13 bits of those in two characters.

const CHARACTERS = 91;  // from ! on, without &, < and >

// Of two characters, the second of which is the high byte.
const values = new Uint16Array(1 << 15);
const codes = Array.from({length: 94}, (_, i) => 33 + i).filter((code) => !'&<>'.includes(String.fromCharCode(code)));
codes.forEach((first, i) => codes.forEach((second, j) => { values[second << 8 | first] = i * CHARACTERS + j; }));

const encoder = new TextEncoder();

// Returns `count` bytes. 16 characters are 13 bytes; where the last ones are fewer, ! stands for zeros.
function unpack(text, count) {
  const groups = Math.ceil(count / 13);
  const pairs = new Uint16Array(8 * groups).fill(0x2121), bytes = new Uint8Array(13 * groups);
  encoder.encodeInto(text, new Uint8Array(pairs.buffer));
  for (let from = 0, to = 0; to < bytes.length; from += 8, to += 13) {
    const a = values[pairs[from]], b = values[pairs[from + 1]], c = values[pairs[from + 2]], d = values[pairs[from + 3]];
    const e = values[pairs[from + 4]], f = values[pairs[from + 5]], g = values[pairs[from + 6]], h = values[pairs[from + 7]];
    bytes[to] = a;
    bytes[to + 1] = a >> 8 | b << 5;
    bytes[to + 2] = b >> 3;
    bytes[to + 3] = b >> 11 | c << 2;
    bytes[to + 4] = c >> 6 | d << 7;
    bytes[to + 5] = d >> 1;
    bytes[to + 6] = d >> 9 | e << 4;
    bytes[to + 7] = e >> 4;
    bytes[to + 8] = e >> 12 | f << 1;
    bytes[to + 9] = f >> 7 | g << 6;
    bytes[to + 10] = g >> 2;
    bytes[to + 11] = g >> 10 | h << 3;
    bytes[to + 12] = h >> 5;
  }
  return bytes.subarray(0, count);
}

async function inflate(bytes) {
  const {readable, writable} = new DecompressionStream('deflate');
  const writer = writable.getWriter();
  writer.write(bytes).catch(() => {});  // whoever reads hears of it
  writer.close().catch(() => {});
  return new Uint8Array(await new Response(readable).arrayBuffer());
}

export class Unpacker {
  #bytes = null;
  #taken = 0;
  #pieces = [];  // promises of those that are in #bytes
  #resolve;
  #reject;

  constructor() {
    this.bytes = new Promise((resolve, reject) => { [this.#resolve, this.#reject] = [resolve, reject]; });
    this.bytes.catch(() => {});  // whoever waits for the bytes hears of it
  }

  // Takes the next piece.
  take(text) {
    const [header, size, piece_size, deflated_size] = /^(\d+) (\d+) (\d+) /.exec(text.slice(0, 60)).map((part, i) => i ? Number(part) : part);
    this.#bytes ??= new Uint8Array(size);
    const at = this.#taken;
    this.#taken += piece_size;
    const stored = unpack(text.slice(header.length), deflated_size || piece_size);
    if (deflated_size) this.#pieces.push(inflate(stored).then((bytes) => this.#bytes.set(bytes, at)));
    else this.#bytes.set(stored, at);
    if (this.#taken === size) Promise.all(this.#pieces).then(() => this.#resolve(this.#bytes), this.#reject);
  }

  // There are no more pieces. `bytes` fails with this reason if some are missing.
  end(reason) {
    if (this.#taken !== this.#bytes?.length) this.#reject(reason);
  }
}
