import type { ErrorEntry } from './entry.ts';

/**
 * The page `docs/errors.md`, generated from the table: one section for each area, one entry for each code, in the
 * table's order within alphabetical areas.
 *
 * @param table codes to what they mean
 */
export function errorsPage(table: Readonly<Record<string, ErrorEntry>>): string {
  const areas = new Map<string, string[]>();
  for (const [code, entry] of Object.entries(table)) {
    const area = code.split('_')[1]?.toLowerCase() ?? '';
    areas.set(area, [...(areas.get(area) ?? []), section(code, entry)]);
  }
  const names = [...areas.keys()].sort();
  return [
    '# Errors\n',
    'Generated from `src/core/errors/table/` by `npm run docs`. Words in {braces} are filled in when the error',
    'is met; the status is that of an HTTP request which ends with it.\n',
    names.map((name) => `[${name}](#${name})`).join(' · '),
    ...names.flatMap((name) => [`\n## ${name}`, ...(areas.get(name) ?? [])]),
    '',
  ].join('\n');
}

function section(code: string, { what, remedy, status }: ErrorEntry): string {
  return `\n### ${code}\n\n${what} (${status})\n\n**What to do:** ${remedy}`;
}
