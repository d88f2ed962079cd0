import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { interfaceOf, readPublicInterface } from '../../scripts/api/declarations.ts';
import { apiPages } from '../../scripts/api/pages.ts';
import { REPORT, reportOf } from '../../scripts/api/report.ts';
import { tempDir } from '../support/temp.ts';

const text = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const own = readPublicInterface();

test('[C11] no change of the public interface is an accident: it is that of the committed report', (t) => {
  t.is(text(REPORT), reportOf(own), 'run `npm run api` if the change is meant');
});

for (const [path, expected] of Object.entries(apiPages(own))) {
  test(`[C11] ${path} is what the doc comments say`, (t) => t.is(text(path), expected, 'run `npm run docs`'));
}

test('[C11] every export says in a sentence what it is, and is either public or experimental', (t) => {
  for (const { specifier, exports } of own.entries) {
    for (const { name, stability, comment } of exports) {
      t.truthy(stability, `${specifier}: ${name} has neither tag, or both`);
      t.regex(
        comment.replace(/@(?:public|experimental)\b/g, ''),
        /^\s*[^@\s]/,
        `${specifier}: ${name} says nothing`,
      );
    }
  }
});

const PARTS = `
import type { Logger } from 'pino';
/** What is used. */
export interface Used { readonly a: string; }
export interface Unused { readonly b: string; }
export declare class Thing {
  #private;
  private readonly hidden;
  /** A member. */
  use(used: Used, log: Logger): void;
}`;
const ENTRY = `
import { Thing } from './parts.ts';
/** Makes a thing. @experimental */
export declare function make(): Thing;
export declare const made: import("./parts.ts").Thing;
/** From elsewhere. @public */
export { Thing as Renamed } from './parts.ts';
/** Another package's. @public */
export { assign } from 'xstate';
`;

test('[C11] the report has what is exported and all that it consists of, and no comment and no private member', (t) => {
  const dir = tempDir(t);
  const report = (parts: string, entry = ENTRY): string => {
    writeFileSync(join(dir, 'parts.d.ts'), parts);
    writeFileSync(join(dir, 'entry.d.ts'), entry);
    return reportOf(interfaceOf(new Map([['thing', join(dir, 'entry.d.ts')]])));
  };
  const before = report(PARTS);
  for (const part of [
    '// @experimental make\nfunction make(): Thing;',
    'const made: Thing;',
    'interface Used {',
  ])
    t.true(before.includes(part), part);
  t.true(before.includes('// @public assign, of package xstate\n'));
  t.notRegex(before, /Unused|hidden|A member|import\(/);
  t.is(
    report(PARTS.replace('A member', 'The member').replace('hidden', 'other').replace('b: string', 'b: 1')),
    before,
  );
  for (const [from, to] of [
    ['a: string', 'a?: string'],
    ['log: Logger', 'log?: Logger'],
    ['#private;', ''],
  ] as const)
    t.not(report(PARTS.replace(from, to)), before, `${from} → ${to}`);
  t.not(report(PARTS, ENTRY.replace('@experimental', '@public')), before);
  t.not(report(PARTS, ENTRY.replace('Thing as Renamed', 'Thing')), before);
});
