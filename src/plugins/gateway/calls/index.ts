/**
 * The path of a call: `endpoint.ts` reads it, `admit.ts` tells whose it is, `decide.ts` has it judged by its key's actor,
 * `effects.ts` takes the decision back, and `route-call.ts` carries it out. Beside it: `door.ts` for callers without a
 * key, `repeats.ts` and `gathering.ts` for those that are refused again and again, `unread.ts`, `unhandled.ts` and
 * `unforwarded.ts` for what is answered before its body is read, before its handler or whatever the decision, `failed.ts`
 * for what goes wrong with us, and `open-slots.ts`, `held-bodies.ts` and `open-calls.ts` for what is open.
 */
export { judgement } from './decide.ts';
export { Door } from './door.ts';
export { registerCallEffects } from './effects.ts';
export { mcpEndpoint } from './endpoint.ts';
export { HeldBodies } from './held-bodies.ts';
export type { LiveCalls } from './live-call.ts';
export { OpenSlots } from './open-slots.ts';
export { callRoutes, DOOR_ACTOR } from './topics.ts';
export { endUnhandled } from './unhandled.ts';
