/**
 * The test kit for us and for whoever writes a plugin: `given … when … then` tells a machine's behaviour as
 * sentences, `impurities` finds what replay could not repeat, `replayFixture` holds machines to logs of the past. Needs
 * no test runner. May be imported by tests alone; it imports the rest of `core`.
 */
export type { Expected } from './expectation.ts';
export {
  type Before,
  type Elapsed,
  elapsed,
  type Given,
  type GivenEvent,
  given,
  type When,
} from './given.ts';
export { type Impurity, impurities } from './purity.ts';
export { type FixtureReport, replayFixture } from './replay-fixture.ts';
