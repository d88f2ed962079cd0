/**
 * What goes to an upstream and comes back: `request.ts` and `headers.ts` make its request, `client.ts` makes the exchange,
 * `pass.ts` streams the answer with what `rewrite.ts` changes, and `outcome.ts` and `refusals.ts` say how it went.
 */
export { upstreamAgent } from './client.ts';
