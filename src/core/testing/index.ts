/**
 * The test kit for machines, for us and for whoever writes a plugin: `given … when … then` tells a machine's
 * behaviour as sentences, `impurities` finds what replay could not repeat. Pure, needs no test runner. May be
 * imported by tests alone; it imports the rest of `core`.
 */
export {
  type Before,
  type Elapsed,
  type Expected,
  elapsed,
  type Given,
  type GivenEvent,
  given,
  type When,
} from './given.ts';
export { type Impurity, impurities } from './purity.ts';
