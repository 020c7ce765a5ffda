// Colours code: comments, strings, numbers and keywords of a few languages. Other languages stay as they are.

import {element} from './elements.js';

const MAX_CODE = 50000;  // characters

const words = (text) => new Set(text.split(' '));

const C_WORDS = 'auto bool break case char const continue default do double else enum extern false float for goto if inline int long ' +
  'nullptr register return short signed sizeof static struct switch true typedef union unsigned void volatile while NULL';
const CPP_WORDS = 'and catch class co_await co_return co_yield concept const_cast consteval constexpr constinit decltype delete ' +
  'dynamic_cast explicit export final friend mutable namespace new noexcept not operator or override private protected public ' +
  'reinterpret_cast requires static_assert static_cast template this throw try typeid typename using virtual';

// No part of these patterns can fail after its first character, so that all code takes linear time: what is never closed ends
// with the line or the code. The groups are a comment, a string, a number, and a word that may be a keyword.
const NUMBER = String.raw`\d(?:'?[\da-fA-F_])*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?[\p{L}\d_]*`;
const WORD = String.raw`[\p{L}_$][\p{L}\p{N}_$]*`;
const DOUBLE = String.raw`"(?:[^"\\\n]+|\\[^])*"?`;
const SINGLE = String.raw`'(?:[^'\\\n]+|\\[^])*'?`;
const BACKQUOTED = String.raw`${'`'}(?:[^${'`'}\\]+|\\[^])*${'`'}?`;
const SLASHES = String.raw`\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)`;
const TRIPLE = String.raw`"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)`;

const pattern = (comment, string, word = WORD) =>
  new RegExp(`(${comment})|(${string})|(${NUMBER})|(${word})`, 'yu');

const LANGUAGES = {
  python: {
    pattern: pattern('#[^\\n]*', `(?:[rbfuRBFU]{1,2}(?=["']))?(?:${TRIPLE}|${DOUBLE}|${SINGLE})`),
    keywords: words('False None True and as assert async await break case class continue def del elif else except finally for from ' +
      'global if import in is lambda match nonlocal not or pass raise return self try while with yield'),
  },
  c: {
    pattern: pattern(SLASHES, `${DOUBLE}|${SINGLE}`, `#[ \\t]*[a-z]+|${WORD}`),
    keywords: words(`${C_WORDS} ${CPP_WORDS} #include #define #undef #if #ifdef #ifndef #elif #else #endif #pragma #error`),
  },
  javascript: {
    pattern: pattern(SLASHES, `${DOUBLE}|${SINGLE}|${BACKQUOTED}`),
    keywords: words('any as async await boolean break case catch class const continue debugger declare default delete do else enum ' +
      'export extends false finally for from function if implements import in instanceof interface let new null number of private ' +
      'public readonly return static string super switch this throw true try type typeof undefined var void while yield'),
  },
  shell: {
    // "#" starts a comment only at the start of a word. A string may have several lines.
    pattern: pattern('(?<![^\\s;&|(])#[^\\n]*', `"(?:[^"\\\\]+|\\\\[^])*"?|'[^']*'?`, `[\\p{L}_$][\\p{L}\\p{N}_$-]*`),
    keywords: words('break case cd continue do done echo elif else esac eval exec exit export fi for function if in local read ' +
      'readonly return set shift source sudo then trap unset until while'),
  },
  json: {pattern: pattern(SLASHES, DOUBLE), keywords: words('true false null')},
};

const NAMES = new Map(Object.entries({
  python: 'python py python3', c: 'c h cc cpp c++ cxx hpp cuda', javascript: 'javascript js jsx mjs ts tsx typescript',
  shell: 'shell sh bash zsh', json: 'json jsonc jsonl',
}).flatMap(([language, names]) => names.split(' ').map((name) => [name, LANGUAGES[language]])));

const KINDS = ['comment', 'string', 'number', 'keyword'];

// Returns strings and elements that together have the text of the code.
export function highlight(code, name) {
  const language = NAMES.get(name.toLowerCase());
  if (!language || code.length > MAX_CODE) return [code];
  const nodes = [];
  let plain = 0;  // start of what has no colour
  for (let i = 0; i < code.length;) {
    language.pattern.lastIndex = i;
    const found = language.pattern.exec(code);
    const kind = found ? found.slice(1).findIndex((group) => group !== undefined) : -1;
    const end = i + (found?.[0].length || 1);
    if (kind >= 0 && (KINDS[kind] !== 'keyword' || language.keywords.has(found[0].replace(/[ \t]/g, '')))) {
      nodes.push(code.slice(plain, i), element('span', {class: KINDS[kind]}, found[0]));
      plain = end;
    }
    i = end;
  }
  nodes.push(code.slice(plain));
  return nodes.filter((node) => node !== '');
}
