import { REDACTED } from './mask-text.ts';

/** Characters of a secret that are enough to be worth hiding. */
const SHORTEST_PIECE = 8;
/** A piece of this length is hidden even when it consists of words. */
const SURELY_SECRET = 16;

/**
 * What a server may put into a text that it wraps: white space, also as JSON writes it. The escapes are bounded: of a secret
 * that begins with n, each of many would be a beginning that is followed to the end of all.
 */
const BREAK = '\\s*(?:\\\\[nrt]\\s*){0,12}';

/**
 * A text without the given secrets: neither whole, nor wrapped at line ends, nor with the escapes of JSON, URLs or HTML, nor
 * in pieces of at least eight characters, as a server leaves them that shortens what it quotes. A short piece of whole words
 * stays, for it may stand there by itself; so does what a server hides on purpose.
 *
 * @param secrets none of them empty
 * @param mark stands in place of each secret and each piece
 */
export function withoutSecrets(text: string, secrets: readonly string[], mark: string = REDACTED): string {
  // The longest first: a secret may hold another one.
  const longest = [...secrets].sort((a, b) => b.length - a.length);
  const whole = longest.reduce((rest, secret) => rest.replaceAll(secret, mark), text);
  const unwrapped = longest.reduce((rest, secret) => rest.replace(wrapped(secret), mark), whole);
  return longest.reduce((rest, secret) => withoutPieces(rest, secret, mark), unwrapped);
}

/** @returns whether a text holds a secret, or a piece of it that `withoutSecrets` would mask */
export function holdsSecret(text: string, secrets: readonly string[]): boolean {
  return withoutSecrets(text, secrets, '') !== text;
}

function wrapped(secret: string): RegExp {
  return new RegExp([...secret].map(written).join(BREAK), 'g');
}

/** One character as JSON, the query of a URL or HTML may write it, also within another text of JSON or in a query again. */
function written(character: string): string {
  const code = character.charCodeAt(0);
  const plain = RegExp.escape(character);
  if (code > 0x7e || character.length > 1) return plain;
  const hex = code.toString(16).padStart(2, '0');
  const digits = [...hex].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('');
  // A backslash before a letter would be a break as well, and there are too many ways to divide a long text into both.
  const escaped = /["'/]/.test(character) ? `\\\\{0,3}${plain}` : plain;
  return `(?:${escaped}|\\\\{1,4}u00${digits}|%(?:25){0,3}${digits}|&#(?:0{0,4}${code}|[xX]0{0,4}${digits});)`;
}

/** The text is read once: each of its runs of eight characters is looked up among those of the secret. */
function withoutPieces(text: string, secret: string, mark: string): string {
  if (secret.length < SHORTEST_PIECE || text.length < SHORTEST_PIECE) return text;
  const places = placesIn(secret);
  let masked = '';
  let kept = 0;
  for (let at = 0; at + SHORTEST_PIECE <= text.length; ) {
    const piece = longestPiece(text, at, secret, places);
    if (piece?.isWorthHiding) {
      masked += text.slice(kept, at) + mark;
      kept = at + piece.length;
    }
    at += piece?.length ?? 1;
  }
  return kept === 0 ? text : masked + text.slice(kept);
}

function placesIn(secret: string): Map<string, number[]> {
  const places = new Map<string, number[]>();
  for (let place = 0; place + SHORTEST_PIECE <= secret.length; place += 1) {
    const run = secret.slice(place, place + SHORTEST_PIECE);
    places.set(run, [...(places.get(run) ?? []), place]);
  }
  return places;
}

/** @returns the longest piece of the secret that begins here */
function longestPiece(
  text: string,
  at: number,
  secret: string,
  places: ReadonlyMap<string, readonly number[]>,
): { readonly length: number; readonly isWorthHiding: boolean } | undefined {
  const pieces = (places.get(text.slice(at, at + SHORTEST_PIECE)) ?? []).map((place) => {
    let length = SHORTEST_PIECE;
    while (place + length < secret.length && text[at + length] === secret[place + length]) length += 1;
    return { length, isWorthHiding: isWorthHiding(secret, place, length) };
  });
  const length = Math.max(0, ...pieces.map((piece) => piece.length));
  const longest = pieces.filter((piece) => piece.length === length);
  return longest.find((piece) => piece.isWorthHiding) ?? longest[0];
}

const LETTER = /[a-z]/i;
const WORD = /[a-z]+/gi;

/** Whether a piece is more than some whole words of its secret, such as the name of the program in it. */
function isWorthHiding(secret: string, place: number, length: number): boolean {
  const piece = secret.slice(place, place + length);
  if (length >= SURELY_SECRET || /\d|[a-z][A-Z]/.test(piece)) return true;
  for (const { 0: word, index } of piece.matchAll(WORD)) {
    const start = place + index;
    const isWhole = !LETTER.test(secret[start - 1] ?? '') && !LETTER.test(secret[start + word.length] ?? '');
    if (!isWhole && word.length >= SHORTEST_PIECE) return true;
  }
  return false;
}
