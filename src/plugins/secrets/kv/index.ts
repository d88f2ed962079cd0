/**
 * Secrets on a server that speaks the KV version 2 protocol of HashiCorp Vault and OpenBao: `<path>#<property>` is a
 * property of `<mount>/data/<path>`. Put it in the place of `secrets-folder`.
 *
 * Imports core; no other plugin.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { kvStore } from './kv-store.ts';

/** A token in plaintext is read by whoever sits on the way. */
function isPrivate(text: string): boolean {
  const { protocol, hostname } = new URL(text);
  return protocol === 'https:' || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname);
}

/**
 * Provides the secrets store.
 *
 * @example secretsKv({ url: 'https://vault.example:8200', tokenFile: '/run/secrets/vault-token' })
 */
export const secretsKv = definePlugin({
  name: 'secrets-kv',
  about: {
    area: 'Secrets',
    what: 'secrets on a server of the KV version 2 protocol',
    docs: 'stack.md',
  },
  options: z.strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .refine((text) => !/[@?#]/.test(text), 'it must hold no user, query or fragment')
      .refine(isPrivate, 'it must be https:// unless it is on this machine'),
    /** File (mode 0600) with the server's token, read at each call. */
    tokenFile: z.string().min(1),
    mount: z
      .string()
      .regex(/^[\w-]+(?:\/[\w-]+)*$/)
      .default('secret'),
    /** What stands before every path, e.g. `clusters/home`. */
    prefix: z
      .string()
      .regex(/^[\w.-]+(?:\/[\w.-]+)*$/)
      .optional(),
    namespace: z
      .string()
      .regex(/^[\w/-]+$/)
      .optional(),
    /** File (PEM) with the authority of the server's certificate; the system's unless set. */
    caFile: z.string().min(1).optional(),
    /** Of one request, milliseconds. */
    deadlineMs: z.int().min(100).max(60_000).default(5_000),
  }),
  env: { HOLDFAST_SECRETS_URL: 'url', HOLDFAST_SECRETS_TOKEN_FILE: 'tokenFile' },
  provides: [SecretsStoreToken],
  onFailure: 'continue',
  register(context, { caFile, tokenFile, ...rest }) {
    let store: ReturnType<typeof kvStore> | undefined;
    context.provide(SecretsStoreToken, () => {
      store ??= kvStore({
        ...rest,
        tokenFile: resolve(tokenFile),
        ...(caFile !== undefined && { ca: readFileSync(resolve(caFile), 'utf8') }),
      });
      return store;
    });
    context.onStop(() => store?.close());
  },
});
