import { MOST_DECODED, percentDecoded } from '../../../core/host/percent-encoding.ts';

/** More long parts than any text has that means well. */
export const MOST_PARTS = 128;

const BETWEEN_WORDS = /[\s,;"]+/;
const BETWEEN_PIECES = /[=&?/:|'()<>[\]{}]+/;
/** The space of a form, what names a user or a fragment in a URL, and encoded characters that no key has: a line's end. */
const WITHIN_PIECES = /(?:[+@#\\]|%(?:[01][\da-f]|7f|[89a-f][\da-f]))+/i;
const IN_PIECES = /[=&?/:|'()<>[\]{}%+@#\\]/;
const BASIC = /(?<![\w-])basic[\s+]+([\w+/-]+)/gi;

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

/** No key has a space; it may have any other sign at which words end. */
const endsWord = (code: number): boolean => code <= 0x20;

/**
 * Whatever of a text may be a key: all of it, its words, what stands behind a name in them and between their signs, what
 * is in `Basic`, and all of that under percent-encoding.
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
  yield text.trim().replace(/^bearer[\s+]+/i, '');
  for (const word of text.split(BETWEEN_WORDS)) {
    if (word === '' || /^bearer$/i.test(word)) continue;
    yield word;
    if (!IN_PIECES.test(word)) continue;
    for (const piece of word.split(BETWEEN_PIECES)) {
      yield piece;
      yield* piece.split(WITHIN_PIECES);
    }
    for (const pair of word.split(/[?&]/)) {
      yield pair;
      yield pair.slice(pair.indexOf('=') + 1); // what is between signs may have some at its own end: =
    }
  }
  for (const [, basic = ''] of text.matchAll(BASIC)) {
    const login = Buffer.from(basic, 'base64').toString('latin1').trim();
    yield* login.split(':');
    yield login.slice(login.indexOf(':') + 1); // the key itself may have one
  }
}
