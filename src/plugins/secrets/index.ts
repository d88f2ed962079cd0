/**
 * Three plugins that keep secrets named `<path>#<property>`; a configuration lists one of them. `secretsFolder`: files in
 * a folder, as secrets are mounted into containers. `secretsEnvironment`: environment variables. `secretsKv`: a server of
 * the KV version 2 protocol, such as HashiCorp Vault or OpenBao. Any plugin that provides `SecretsStoreToken` can take
 * their place.
 */
import { readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { SecretsError, type SecretsStore, SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { plaintextHost } from '../../core/host/http/plaintext.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { replaceSecretFile } from '../../core/kernel/secret-file.ts';
import { kvStore } from './kv-store.ts';

/**
 * Provides secrets from files of mode 0600 (G19): the secret `<path>#<property>` is the file `<folder>/<path>/<property>`.
 *
 * @example secretsFolder({ folder: '/run/secrets/holdfast' })
 * @public
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
  variables: {
    HOLDFAST_SECRETS_DIR: 'Folder of secrets, one file each; `secrets/store` of the data folder unless set.',
  },
  provides: [SecretsStoreToken],
  onFailure: 'continue',
  register(context, { folder }) {
    context.provide(SecretsStoreToken, ({ dataDir }) =>
      folderStore(folder === undefined ? join(dataDir, 'secrets', 'store') : resolve(folder)),
    );
  },
});

/**
 * Provides secrets from environment variables, read-only: the secret `<path>#<property>` is the variable
 * `HOLDFAST_SECRET_<PATH>_<PROPERTY>`.
 *
 * @example secretsEnvironment()
 * @public
 */
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
 * Provides secrets from a server of the KV version 2 protocol.
 *
 * @example secretsKv({ url: 'https://vault.example:8200', tokenFile: '/run/secrets/vault-token' })
 * @public
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
      .refine(
        (text) => plaintextHost(text) === undefined,
        'it must be https:// unless it is on this machine',
      ),
    /** File (mode 0600) with the server's token, read at each call. */
    tokenFile: z.string().min(1),
    /** Where the server mounts its KV engine. */
    mount: z
      .string()
      .regex(/^[\w-]+(?:\/[\w-]+)*$/)
      .default('secret'),
    /** Prefix of every path, e.g. `clusters/home`. */
    prefix: z
      .string()
      .regex(/^[\w.-]+(?:\/[\w.-]+)*$/)
      .optional(),
    namespace: z
      .string()
      .regex(/^[\w/-]+$/)
      .optional(),
    /** File (PEM) with the authority of the server's certificate; the system's authorities unless set. */
    caFile: z.string().min(1).optional(),
    /** Deadline of one call, milliseconds. */
    deadlineMs: z.int().min(100).max(60_000).default(5_000),
  }),
  env: { HOLDFAST_SECRETS_URL: 'url', HOLDFAST_SECRETS_TOKEN_FILE: 'tokenFile' },
  variables: {
    HOLDFAST_SECRETS_URL: 'Server of the KV version 2 protocol (Vault, OpenBao), instead of the folder.',
    HOLDFAST_SECRETS_TOKEN_FILE: 'File (mode 0600) with the token for it.',
  },
  errors: SecretsError,
  provides: [SecretsStoreToken],
  onFailure: 'continue',
  start(_services, { caFile, tokenFile, ...rest }) {
    return kvStore({
      ...rest,
      tokenFile: resolve(tokenFile),
      ...(caFile !== undefined && { ca: readFileSync(resolve(caFile), 'utf8') }),
    });
  },
  register(context) {
    context.provide(SecretsStoreToken, (store) => store);
    context.onStop((store) => store.close());
  },
});

/**
 * A store whose files are read when their secret is needed, and refused when group or others have any right on them.
 *
 * @param folder absolute path
 * @experimental
 */
export function folderStore(folder: string): SecretsStore {
  return {
    // The pattern of secret references allows no `..` in either part.
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

/** A store that can only be read: whoever starts the process sets its variables. @experimental */
export function environmentStore(env: NodeJS.ProcessEnv = process.env): SecretsStore {
  return {
    async read(path, property) {
      const name = variableName(path, property);
      const value = env[name]?.trim();
      if (value) return value;
      throw new KernelError('HF_CONFIG_SECRET_MISSING', { file: name, reason: 'the variable is not set' });
    },
    async describe(path, property) {
      const name = variableName(path, property);
      return { exists: Boolean(env[name]?.trim()), place: `variable ${name}` };
    },
  };
}

function variableName(path: string, property: string): string {
  return `HOLDFAST_SECRET_${`${path}_${property}`.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`;
}
