/** The promises of `transaction.test.ts`, with the config in Redis. */
process.env.HOLDFAST_TEST_STORE = 'redis';
await import('./transaction.test.ts');
