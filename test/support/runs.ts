/**
 * How often a property is tried. `npm run verify` tries a fifth of that, for it runs before every commit; `npm test`
 * tries them all.
 */
export function runs(count: number): number {
  return process.env.HOLDFAST_FAST_TESTS ? Math.ceil(count / 5) : count;
}
