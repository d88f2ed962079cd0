import { MOST_DECODED, percentDecoded } from '../../../core/percent-encoding.ts';

/** More long parts than any text has that means well. */
export const MOST_PARTS = 128;

const BETWEEN_WORDS = /[\s,;"]+/;
const BETWEEN_PIECES = /[=&?/:|'()<>[\]{}]+/;
const IN_PIECES = /[=&?/:|'()<>[\]{}%]/;

/**
 * Whether a text has a word that may be a key: no text without one need be taken apart. It looks from the end of where
 * such a word would be, so most of a text is not looked at.
 */
export function hasLongWord(text: string, shortest: number): boolean {
  for (let start = 0; start + shortest <= text.length; ) {
    let at = start + shortest - 1;
    while (at >= start && !endsWord(text.charCodeAt(at))) at -= 1;
    if (at < start) return true;
    start = at + 1;
  }
  return false;
}

/** Those of `BETWEEN_WORDS` that a header or a URL can have; taking another for a part of a word only costs time. */
const endsWord = (code: number): boolean => code <= 0x20 || code === 0x2c || code === 0x3b || code === 0x22;

/**
 * Whatever of a text may be a key: its words, what stands behind a name in them and between their signs, what is in
 * `Basic`, and all of that under percent-encoding.
 *
 * @param shortest characters of a key
 * @returns at most 128
 */
export function keyParts(text: string, shortest: number): readonly string[] {
  const found = new Set<string>();
  gather(found, text, shortest, MOST_DECODED);
  return [...found];
}

function gather(found: Set<string>, text: string, shortest: number, decodings: number): void {
  for (const part of partsOf(text)) {
    if (found.size >= MOST_PARTS) return;
    if (part.length < shortest || found.has(part)) continue;
    found.add(part);
    const plain = decodings > 0 ? percentDecoded(part) : part;
    if (plain !== part) gather(found, plain, shortest, decodings - 1);
  }
}

function* partsOf(text: string): Generator<string> {
  for (const word of text.split(BETWEEN_WORDS)) {
    if (word === '' || /^bearer$/i.test(word)) continue;
    yield word;
    if (!IN_PIECES.test(word)) continue;
    yield* word.split(BETWEEN_PIECES);
    for (const pair of word.split(/[?&]/)) {
      yield pair;
      yield pair.slice(pair.indexOf('=') + 1); // what is between signs may have some at its own end: =
    }
  }
  const basic = /^\s*basic\s+(\S+)/i.exec(text)?.[1];
  if (basic !== undefined) yield* Buffer.from(basic, 'base64').toString('latin1').split(':');
}
