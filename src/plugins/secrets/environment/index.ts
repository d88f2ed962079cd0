/**
 * Secrets in environment variables: `<path>#<property>` is `HOLDFAST_SECRET_<PATH>_<PROPERTY>`. It can only be read;
 * whoever started the process writes. Put it in the place of `secrets-folder`.
 *
 * Imports core; no other plugin.
 */
import { z } from 'zod';
import { type SecretsStore, SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../../core/host/plugin/definition.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';

export function environmentStore(env: NodeJS.ProcessEnv = process.env): SecretsStore {
  return {
    async read(path, property) {
      const file = variableOf(path, property);
      const value = env[file]?.trim();
      if (value) return value;
      throw new HoldfastError('HF_CONFIG_SECRET_MISSING', { file, reason: 'the variable is not set' });
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
