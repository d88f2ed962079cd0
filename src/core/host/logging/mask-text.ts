/** The text that replaces a secret. */
export const REDACTED = '[redacted]';

/** Ends of names whose value is a secret. */
const NAME =
  '(?:password|passwd|passphrase|secret|psk|token|cookie|credential|authorization|' +
  '(?:private|preshared|shared|secret|master|mesh|access|api|ingest|virtual)[_-]?key)';

/** Words that follow `bearer` in sentences: `needs a bearer token.` */
const PROSE = '(?:token|key|prefix|scheme|challenge|authentication|authorization)s?[.,;:]?(?:\\s|$)';

const STANDS_FOR_SECRET =
  '(?:<[a-z][\\w -]{0,40}>|\\{[a-z]\\w{0,40}\\}|\\$\\{[a-z]\\w{0,60}\\}|\\$\\([^()\\r\\n]{1,80}\\)|…)';
/**
 * Placeholders for a secret in help texts: `<key>`, `{token}`, `${DESK_KEY}`, `$(cat desk.key)`, `…`. It must be the
 * whole value.
 */
const PLACEHOLDER = `(?:(?:(?:bearer|basic)(?:\\s+|%20|\\+))?${STANDS_FOR_SECRET}(?=["'\`\\s,;)?&\\]]|\\.(?:\\s|$)|$))`;
const QUOTED_PLACEHOLDER = `(?:${PLACEHOLDER}|"${STANDS_FOR_SECRET}"|'${STANDS_FOR_SECRET}')`;

/** A `}` within a value. One that ends the value, or closes what the value is in, is not masked. */
const inner = (ends: string): string => `\\}(?!\\}{0,8}(?:[${ends}"']|$))`;

const pattern = (flags: string, ...parts: string[]): RegExp => new RegExp(parts.join(''), `g${flags}`);

/**
 * Patterns of secrets in running text. Each takes time linear in the length of the text, because none begins with a
 * repetition or nests one in another.
 */
const PATTERNS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [A-Z0-9 ]{1,40}-----[\s\S]*?(?:-----END [A-Z0-9 ]{1,40}-----|$)/g, REDACTED],
  [/AGE-SECRET-KEY-1[A-Z0-9]+/gi, REDACTED],
  // Schemes of `authorization`; a challenge (`Bearer realm="…"`) holds no token.
  [pattern('i', `\\b(bearer(?:\\s+|\\+))(?!${PROSE}|\\w+=["'])[\\w\\-.~+/]{4,}=*`), `$1${REDACTED}`],

  [/\b([Bb]asic(?:\s+|\+))(?=[A-Za-z0-9+/]*[A-Z0-9=])[A-Za-z0-9+/]{6,}={0,2}/g, `$1${REDACTED}`],
  // `after /api/push/.` ends a sentence.
  [pattern('i', `(/api/push/)(?!${PLACEHOLDER}|\\.(?:\\s|$))[^\\s/?#"'\\\\]+`), `$1${REDACTED}`],
  // `redis://[user:password@]host` is how an address is written.
  [/(:\/\/)(?!\[user:password@\])[^\s/?#"'@]+@/g, `$1${REDACTED}@`],
  [/(?<![A-Za-z0-9])sk-[\w-]{6,}/g, REDACTED],
  [/\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)?/g, REDACTED],
  // 32 bytes in base64: keys of ours, and of tunnels.
  [/(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{43}=(?!=)/g, REDACTED],
  // A header line, to its end: such values may hold spaces.
  [
    pattern(
      'i',
      `\\b((?:authorization|cookie|api-key)\\s*:\\s*)(?!\\s|bearer\`|${PLACEHOLDER})(?:[^\\r\\n"'}]|${inner('\\r\\n')})+`,
    ),
    `$1${REDACTED}`,
  ],
  // Text values in JSON, in JSON that was quoted into a text, and between single quotes.
  [pattern('i', `(${NAME}"\\s*:\\s*")(?:[^"\\\\]|\\\\[\\s\\S])*`), `$1${REDACTED}`],
  [
    pattern('i', `(${NAME}(\\\\+)"\\s*:\\s*\\2")(?:(?!(?<!\\\\)\\2")[\\s\\S])*(?:\\2"|$)`),
    `$1${REDACTED}$2"`,
  ],
  [pattern('i', `(${NAME}'\\s*:\\s*')(?:[^'\\\\]|\\\\[\\s\\S])*`), `$1${REDACTED}`],
  [/("key"\s*:\s*")(?:[^"\\]|\\[\s\S])*/g, `$1${REDACTED}`],
  [pattern('i', `(${NAME}\\\\*["']\\s*:\\s*)-?\\d[\\d.]*`), `$1${REDACTED}`],
  // `name=value` of queries, settings and arguments; a bare `key=` only in a query.
  [
    pattern('i', `(${NAME}=)(?!\\[redacted]|${QUOTED_PLACEHOLDER})(?:"[^"]*"?|'[^']*'?|[^\\s,;&"']+)`),
    `$1${REDACTED}`,
  ],
  [pattern('i', `([?&]key=)(?!\`|${PLACEHOLDER})[^\\s&#"']+`), `$1${REDACTED}`],
  // `name: value` of YAML, unless the value reads as a word of a sentence.
  [
    pattern(
      'i',
      `(${NAME}:[ \\t]+)(?!\\[redacted]|${QUOTED_PLACEHOLDER}|[a-z]{1,12}(?:[\\s,.;:)\`]|$))`,
      `(?:"[^"]*"?|'[^']*'?|(?:[^\\s,;&"'}]|${inner('\\s,;&')})+)`,
    ),
    `$1${REDACTED}`,
  ],
];

/** Encoded characters that separate texts, such as the end of a line; the texts beside them are masked separately. */
const NO_SIGN = /%(?:[01][\da-f]|7f|[89a-f][\da-f])/gi;

/** Without any of these no pattern can match. Most texts are names and ids, so one test is enough for them. */
const SUSPECT = /[=:]|bearer|basic|sk-|eyJ|-----|\/push\/|AGE-SECRET|%[2-7]/i;

/** A secret that is cut in two at the end is not recognised, so this much of the end is dropped. */
const EDGE = 512;
const CUT = '…[cut]';

/**
 * Masks what looks like a secret in running text: bearer tokens, push paths, PEM blocks, `sk-` keys, keys in base64,
 * and values named as secrets. A text with a percent-encoded secret is returned decoded.
 *
 * @param limit longest text that is kept, characters; what is beyond is cut off
 */
export function maskText(text: string, limit = 8_192): string {
  const cut = text.length > limit;
  let masked = cut ? text.slice(0, limit + EDGE) : text;
  if (!cut && !SUSPECT.test(masked)) return masked;
  masked = maskReadings(masked);
  return cut ? masked.slice(0, Math.max(0, Math.min(limit, masked.length - EDGE))) + CUT : masked;
}

function maskReadings(text: string): string {
  let masked = maskPlain(text);
  let read = masked;
  for (let left = MOST_DECODED; left > 0; left -= 1) {
    const plain = percentDecoded(read).replace(NO_SIGN, ' ');
    if (plain === read) break;
    read = maskPlain(plain);
    if (read !== plain) masked = read;
  }
  return masked;
}

function maskPlain(text: string): string {
  let masked = text;
  for (const [secret, replacement] of PATTERNS) masked = masked.replace(secret, replacement);
  return masked;
}

/** The encoded forms of visible ASCII and the space. Other characters occur in no name and no key. */
const ENCODED = /%([2-6][\da-f]|7[\da-e])/gi;

/**
 * A text without the percent-encoding (RFC 3986) of its visible ASCII, taken off once. Anything else stays as it is, a
 * malformed part as well.
 *
 * @param text of any length; takes time linear in it
 */
export function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(ENCODED, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** How many layers of percent-encoding are removed: a link may contain an encoded link. */
export const MOST_DECODED = 2;
