/** The promises of `race.slow.test.ts`, with the config in Redis. */
process.env.HOLDFAST_TEST_STORE = 'redis';
await import('./race.slow.test.ts');
