/**
 * What follows from a config without being written in it: the packet filter's chains and address sets (R21, R22, R34), and
 * which prefixes each leg advertises (R20). Pure functions of a config and of the addresses held, for explanations and
 * for the sets' actor; only `collision-watch.ts` listens to anything. Imports the config's shape alone.
 */
export { watchCollisions } from './collision-watch.ts';
