/**
 * One post to somebody's webhook: bounded, never redirected, and without a word of the address in what is told of it, for
 * the address is often the secret. Imports nothing of ours.
 */
export { type Posted, postOnce, scrubber, type WebhookRequest } from './post-once.ts';
