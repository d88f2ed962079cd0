/**
 * The embedded secrets store: a folder in which the secret `<path>#<property>` is the file `<path>/<property>`, as
 * secrets are mounted into containers. Replace it by any plugin that provides `SecretsStoreToken`.
 *
 * Imports core; no other plugin.
 */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type SecretsStore, SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { readTokenFile, replaceSecretFile } from '../../../core/kernel/secret-file.ts';

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
