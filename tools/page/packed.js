// Bytes in the text of a page, as tools/page/bundle.py writes them: deflated, 13 bits in two characters, after the number of
// the deflated bytes and a space. The text may come in pieces of an even length.

const CHARACTERS = 91;  // from ! on, without &, < and >

// Of a character, as the second and as the first of two.
const values = new Uint16Array(128), high_values = new Uint16Array(128);
for (let code = 33, value = 0; value < CHARACTERS; ++code) {
  if ('&<>'.includes(String.fromCharCode(code))) continue;
  high_values[code] = value * CHARACTERS;
  values[code] = value++;
}

export class Unpacker {
  #size = null;  // of the deflated bytes
  #done = 0;
  #bits = 0;
  #count = 0;    // of the bits
  #writer;
  #fail;

  constructor() {
    const {readable, writable} = new DecompressionStream('deflate');
    this.#writer = writable.getWriter();
    this.bytes = new Promise((resolve, reject) => {
      this.#fail = reject;
      new Response(readable).arrayBuffer().then((buffer) => resolve(new Uint8Array(buffer)), reject);
    });
    this.bytes.catch(() => {});  // whoever waits for the bytes hears of it
  }

  // Takes the next piece of the text.
  take(text) {
    let start = 0;
    if (this.#size === null) {
      start = text.indexOf(' ') + 1;
      this.#size = Number(text.slice(0, start));
    }
    const bytes = new Uint8Array(Math.min(this.#size - this.#done, Math.floor((this.#count + 13 * (text.length - start) / 2) / 8)));
    let bits = this.#bits, count = this.#count, size = 0;
    for (let at = start; at < text.length; at += 2) {
      bits |= (high_values[text.charCodeAt(at)] + values[text.charCodeAt(at + 1)]) << count;
      bytes[size] = bits;
      bytes[size + 1] = bits >>> 8;  // the second byte if there are as many bits, else written again
      const whole = (count + 13) >>> 3;
      size += whole;
      bits >>>= 8 * whole;
      count = (count + 13) & 7;
    }
    [this.#bits, this.#count] = [bits, count];
    this.#done += bytes.length;
    this.#writer.write(bytes).catch(() => {});
    if (this.#done === this.#size) this.#writer.close().catch(() => {});
  }

  // There are no more pieces. `bytes` fails with this reason if some are missing.
  end(reason) {
    if (this.#done !== this.#size) this.#fail(reason);
  }
}
