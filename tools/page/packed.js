// Bytes in the text of a page, as tools/page/bundle.py writes them: deflated, 13 bits in two characters, after the number of
// the deflated bytes and a space.

const CHARACTERS = 91;  // from ! on, without &, < and >

const values = new Uint8Array(128);
for (let code = 33, value = 0; value < CHARACTERS; ++code) {
  if (!'&<>'.includes(String.fromCharCode(code))) values[code] = value++;
}

// Returns the bytes of a text.
export async function unpack(text) {
  const start = text.indexOf(' ') + 1;
  const bytes = new Uint8Array(Number(text.slice(0, start)));
  let bits = 0, count = 0, size = 0;
  for (let at = start; at < text.length; at += 2) {
    bits |= (values[text.charCodeAt(at)] * CHARACTERS + values[text.charCodeAt(at + 1)]) << count;
    for (count += 13; count >= 8; count -= 8) {
      bytes[size++] = bits;
      bits >>>= 8;
    }
  }
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}
