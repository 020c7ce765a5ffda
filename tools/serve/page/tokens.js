// Reads the log-probabilities of a streamed completion, in the form of OpenAI's older API.

const encoder = new TextEncoder();

// Returns the bytes of a token. One that is no whole text is written "bytes:\xe4\xbd".
export function tokenBytes(token) {
  if (!/^bytes:(?:\\x[0-9a-f]{2})+$/i.test(token)) return encoder.encode(token);
  return Uint8Array.from(token.slice(6).match(/[0-9a-f]{2}/gi), (digits) => Number.parseInt(digits, 16));
}

// The names of tokens such as <|im_end|>, which are no part of the text.
const SPECIAL = /^(?:<\|.*\|>|<\/?s>)$/;

// Collects tokens into cells, each of which is text: usually one token, and the tokens of a character that has several.
//   cell   {text, tokens, whole, special}; token {text, logprob, alternatives: [[text, logprob], ...], the likeliest first}
export class TokenCells {
  cells = [];

  // Adds the tokens of a chunk with this text. Returns the index of the first cell that changed.
  add(chunk_text, {tokens = [], token_logprobs: logprobs = [], top_logprobs: top = []}) {
    let first = this.cells.length;
    tokens.forEach((text, i) => {
      const alternatives = Object.entries(top?.[i] ?? {}).sort((a, b) => b[1] - a[1]);
      const token = {text, logprob: logprobs?.[i] ?? null, alternatives};
      const last = this.cells.at(-1);
      if (last && !last.whole && text.startsWith('bytes:') && this.extend(last, token)) {
        first = Math.min(first, this.cells.length - 1);
      } else {
        this.cells.push({...cellOf([token]), special: SPECIAL.test(text) && !chunk_text.includes(text)});
      }
    });
    return first;
  }

  // Adds text that came without log-probabilities.
  addText(text) {
    this.cells.push({text, tokens: [], whole: true});
    return this.cells.length - 1;
  }

  text() {
    return textOf(this.cells);
  }

  extend(cell, token) {
    if (cell.tokens.length >= 4) return false;
    Object.assign(cell, cellOf([...cell.tokens, token]));
    return true;
  }

  // exp of the mean negative log-probability, or null without any.
  perplexity() {
    const known = this.cells.flatMap((cell) => cell.tokens).map((token) => token.logprob).filter((value) => value !== null);
    const sum = known.reduce((total, value) => total + value, 0);
    return known.length > 0 ? {tokens: known.length, value: Math.exp(-sum / known.length)} : null;
  }
}

// Returns the text of the cells.
export function textOf(cells) {
  return cells.filter((cell) => !cell.special).map((cell) => cell.text).join('');
}

function cellOf(tokens) {
  const bytes = Uint8Array.from(tokens.flatMap((token) => [...tokenBytes(token.text)]));
  try {
    return {text: new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes), tokens, whole: true};
  } catch {
    return {text: new TextDecoder().decode(bytes), tokens, whole: false};
  }
}
