/**
 * Virtual keys and the master key: whose a presented value is (`caller.ts`, by the hash of `key-id.ts`), where one stands
 * that should not (`misplaced.ts`, in the parts of a text that `key-parts.ts` finds), and how keys are made, changed and
 * shown (`admin.ts`, `view.ts`). No value outlives its request here.
 */
export { KeyAdmin } from './admin.ts';
export { registerKeyControl } from './control.ts';
export { MasterKey } from './master-key.ts';
export type { KnownKeys } from './misplaced.ts';
export { KEY_ACTOR, KeyRegistry } from './registry.ts';
export { keyRoute } from './topics.ts';
