/**
 * Configs as the commands handle them: read from a file, told apart leaf by leaf, changed at a path, with placeholders in
 * the place of secrets. Pure but for reading files; the commands load each part when they need it.
 */
export { parseConfig } from './config-file.ts';
export { type Change, differenceOf, type Fingerprint } from './difference.ts';
