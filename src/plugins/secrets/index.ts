import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { SecretsError, type SecretsStore, SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { CoreError } from '../../core/kernel/errors/core-error.ts';
import { readTokenFile, replaceSecretFile } from '../../core/kernel/secret-file.ts';
import { kvStore } from './kv-store.ts';

/**
 * The embedded secrets store: a folder in which the secret `<path>#<property>` is the file `<path>/<property>`, as
 * secrets are mounted into containers. Replace it by any plugin that provides `SecretsStoreToken`.
 *
 * Imports core; no other plugin.
 */

/**
 * Every file is read when its secret is asked for, and refused when group or others have any right on it.
 *
 * @param folder absolute path
 */
export function folderStore(folder: string): SecretsStore {
  return {
    // The reference's own pattern allows no `..` in either part.
    read: async (path, property) => readTokenFile(join(folder, path, property)),
    async write(path, property, value) {
      replaceSecretFile(join(folder, path, property), Buffer.from(`${value}\n`));
    },
    async describe(path, property) {
      const place = join(folder, path, property);
      const stat = statSync(place, { throwIfNoEntry: false });
      return { exists: stat !== undefined, place, ...(stat && { changedAt: Math.round(stat.mtimeMs) }) };
    },
  };
}

/**
 * Provides the secrets store (G19).
 *
 * @example secretsFolder({ folder: '/run/secrets/holdfast' })
 */
export const secretsFolder = definePlugin({
  name: 'secrets-folder',
  about: {
    area: 'Secrets',
    what: 'secrets as files of mode 0600',
    docs: 'stack.md',
  },
  options: z.strictObject({
    /** `<data dir>/secrets/store` unless set. */
    folder: z.string().min(1).optional(),
  }),
  env: { HOLDFAST_SECRETS_DIR: 'folder' },
  provides: [SecretsStoreToken],
  onFailure: 'continue',
  register(context, { folder }) {
    context.provide(SecretsStoreToken, () =>
      folderStore(
        folder === undefined ? join(context.services.dataDir, 'secrets', 'store') : resolve(folder),
      ),
    );
  },
});

/**
 * Secrets in environment variables: `<path>#<property>` is `HOLDFAST_SECRET_<PATH>_<PROPERTY>`. It can only be read;
 * whoever started the process writes. Put it in the place of `secrets-folder`.
 *
 * Imports core; no other plugin.
 */

export function environmentStore(env: NodeJS.ProcessEnv = process.env): SecretsStore {
  return {
    async read(path, property) {
      const file = variableOf(path, property);
      const value = env[file]?.trim();
      if (value) return value;
      throw new CoreError('HF_CONFIG_SECRET_MISSING', { file, reason: 'the variable is not set' });
    },
    async describe(path, property) {
      const name = variableOf(path, property);
      return { exists: Boolean(env[name]?.trim()), place: `variable ${name}` };
    },
  };
}

function variableOf(path: string, property: string): string {
  return `HOLDFAST_SECRET_${`${path}_${property}`.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`;
}

/** Provides the secrets store from the environment. */
export const secretsEnvironment = definePlugin({
  name: 'secrets-environment',
  about: {
    area: 'Secrets',
    what: 'secrets from variables',
    docs: 'stack.md',
  },
  options: z.strictObject({}),
  provides: [SecretsStoreToken],
  onFailure: 'continue',
  register(context) {
    context.provide(SecretsStoreToken, () => environmentStore());
  },
});

/**
 * Secrets on a server that speaks the KV version 2 protocol of HashiCorp Vault and OpenBao: `<path>#<property>` is a
 * property of `<mount>/data/<path>`. Put it in the place of `secrets-folder`.
 *
 * Imports core; no other plugin.
 */

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
  errors: SecretsError,
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
