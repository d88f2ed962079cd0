/** One way to log in that an upstream names in `WWW-Authenticate`. */
export interface Challenge {
  /** In small letters. */
  readonly scheme: string;
  /** By name in small letters, out of their quotes. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** Longest value that is taken, characters. */
const LONGEST = 512;
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

// Each looks at one place of the text, and none has a repetition inside another that could match the same.
const BETWEEN = /[\s,;]*/y;
const SCHEME = new RegExp(`(${TOKEN})(?=[\\s,]|$)`, 'y');
const TOKEN68 = /[ \t]+[\w.~+/-]+=*[ \t]*(?=,|$)/y;
/** An unquoted value is a token by the rules; many a server leaves the quotes out around more than that. */
const PARAMETER = new RegExp(`(${TOKEN})[ \\t]*=[ \\t]*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s",;]+))`, 'y');
const SHOWABLE = /^[\x20-\x7e]*$/;

/**
 * The challenges of an answer (RFC 9110, 11.6.1), those for a bearer token first. What breaks the rules is passed over up
 * to the next comma; a parameter is left out that is longer than 512 characters or has others than visible ASCII.
 *
 * @param header `WWW-Authenticate`, each time it came
 */
export function challengesIn(header: string | readonly string[] | undefined): readonly Challenge[] {
  const found = [header ?? []].flat().flatMap(challengesOfLine);
  const isBearer = ({ scheme }: Challenge) => scheme === 'bearer';
  return [...found.filter(isBearer), ...found.filter((challenge) => !isBearer(challenge))];
}

function challengesOfLine(line: string): Challenge[] {
  const found: { scheme: string; parameters: Map<string, string> }[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(line);
    if (match) at = pattern.lastIndex;
    return match;
  };
  for (take(BETWEEN); at < line.length; take(BETWEEN)) {
    const current = found.at(-1);
    const parameter = current && take(PARAMETER);
    if (parameter) {
      const [, name = '', quoted, bare = ''] = parameter;
      const value = quoted === undefined ? bare : quoted.replace(/\\(.)/g, '$1');
      const isNew = !current.parameters.has(name.toLowerCase());
      if (isNew && value.length <= LONGEST && SHOWABLE.test(value)) {
        current.parameters.set(name.toLowerCase(), value);
      }
      continue;
    }
    const scheme = take(SCHEME)?.[1];
    if (scheme === undefined) {
      const comma = line.indexOf(',', at);
      at = comma < 0 ? line.length : comma;
    } else {
      found.push({ scheme: scheme.toLowerCase(), parameters: new Map() });
      take(TOKEN68);
    }
  }
  return found;
}

/** A parameter as it is written into a challenge of our own. */
export const written = (name: string, value: string): string =>
  `${name}="${value.replace(/["\\]/g, '\\$&')}"`;
