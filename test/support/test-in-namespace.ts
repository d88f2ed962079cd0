import test from 'ava';
import { canMakeNamespaces } from './netns.ts';

/** For tests that need a kernel of their own: where nobody may make a namespace they are skipped, and counted so. */
export const testInNamespace: typeof test.serial | typeof test.serial.skip = canMakeNamespaces()
  ? test.serial
  : test.serial.skip;
