/** The promises of `routes.test.ts`, with the config in Redis. */
process.env.HOLDFAST_TEST_STORE = 'redis';
await import('./routes.test.ts');
