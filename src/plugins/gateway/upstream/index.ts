/**
 * What goes to an upstream and comes back: `request.ts` and `headers.ts` make its request, `client.ts` makes the exchange,
 * `pass.ts` streams the answer with what `rewrite.ts` changes, and `outcome.ts`, `refusals.ts` and `faults.ts` say how
 * it went and whose fault that was.
 */
export { upstreamAgent } from './client.ts';
