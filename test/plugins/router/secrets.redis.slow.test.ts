/** The promises of `secrets.test.ts`, with the config in Redis. */
process.env.HOLDFAST_TEST_STORE = 'redis';
await import('./secrets.test.ts');
