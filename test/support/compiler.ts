/**
 * Environment of the TypeScript compiler, a Go program that runs for seconds: collecting its garbage takes half of its
 * processor's time, and with all of this product it needs less than this much memory.
 */
export const COMPILER_ENV = { ...process.env, GOGC: 'off', GOMEMLIMIT: '2GiB' };
