import { readFileSync } from 'node:fs';

/**
 * The release that runs, from package.json, which lies two folders above this file in `src` and in `dist`.
 *
 * @public
 */
export const version: string = JSON.parse(
  readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'),
).version;
