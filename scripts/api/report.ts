/**
 * The report of the public interface: every declaration that somebody who uses the package compiles against, without
 * comments. The committed one is compared with today's, so that no change of it is an accident.
 */
import type { Declared } from './declaration-file.ts';
import type { PublicInterface } from './declarations.ts';

/** Where the report of the committed interface is kept, from the root of the project. */
export const REPORT = 'docs/reference/public-interface.md';

/** @returns the text of the report */
export function reportOf({ entries, reached }: PublicInterface): string {
  return [
    '# Public interface',
    '',
    'Written by `npm run api`. A test compares it with the code: whoever changes the interface on purpose writes it anew, and',
    'says in [the changelog](../../CHANGELOG.md) what users of the package have to change.',
    ...entries.flatMap(({ specifier, exports }) => [
      ...['', `## ${specifier}`, '', '```ts'],
      ...exports.map(
        (one) => `// @${one.stability} ${one.name}${one.text === '' ? `, of ${one.kind}` : `\n${bare(one)}`}`,
      ),
      '```',
    ]),
    ...[
      '',
      '## Used by the above',
      '',
      'They are not exported, but what is exported consists of them.',
      '',
      '```ts',
    ],
    ...reached.map(bare).sort(),
    ...['```', ''],
  ].join('\n');
}

function bare({ text }: Declared): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trim();
}
