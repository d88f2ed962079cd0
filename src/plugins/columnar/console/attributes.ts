/** The most characters of one value. */
const LONGEST = 1_000;

type Facts = Record<string, string | number | boolean | null>;

/**
 * Attributes of a row for people, whether the table keeps them as a map or as the type JSON.
 *
 * @param groups by what is written before their names, e.g. `resource`
 * @param most how many are kept
 */
export function factsOf(groups: Readonly<Record<string, unknown>>, most: number): Facts {
  const entries = Object.entries(groups).flatMap(([prefix, value]) =>
    flat(value).map(([name, inner]) => [prefix === '' ? name : `${prefix} ${name}`, inner] as const),
  );
  return Object.fromEntries(entries.slice(0, Math.max(0, most)));
}

function flat(value: unknown, path = ''): (readonly [string, string])[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    return text === '' || path === '' ? [] : [[path, text.slice(0, LONGEST)]];
  }
  return Object.entries(value).flatMap(([name, inner]) =>
    flat(inner, path === '' ? name : `${path}.${name}`),
  );
}
