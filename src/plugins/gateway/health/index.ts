/**
 * How the upstreams of routes are (G17): `prober.ts` looks at each now and then, `probe.ts` is one look, and the actor
 * `gateway.route/<name>` decides what it means.
 */
export { describeHealthRecord } from './describe.ts';
export { probe } from './probe.ts';
export { HEALTH_ACTOR, healthRoutes, Prober } from './prober.ts';
