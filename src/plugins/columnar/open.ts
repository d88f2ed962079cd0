import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { SecretsStore } from '../../core/contracts/secrets-store.ts';
import { parseSecretReference } from '../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import type { Engine } from './engine/engine.ts';
import { EMBEDDED_DATABASE } from './engine/grants.ts';
import type { ColumnarOptions } from './options.ts';
import type { SchemaOptions } from './schema.ts';

/**
 * Makes the engine that the options name, without a first query. Only the code of that engine is loaded.
 *
 * @param mayOpen the embedded engine is not opened before it resolves
 * @throws HF_COLUMNAR_ENGINE_MISSING
 */
export async function openEngine(
  options: ColumnarOptions,
  dataDir: string,
  secrets: SecretsStore | undefined,
  mayOpen?: Promise<void>,
): Promise<Engine> {
  const { url, folder } = options;
  if (url === undefined) {
    const backups = backupFolder(options, dataDir);
    const [{ EmbeddedEngine }, { findEngine }] = await Promise.all([
      import('./engine/embedded.ts'),
      import('./engine/folder.ts'),
    ]);
    findEngine();
    const place = folder === undefined ? join(dataDir, 'columnar') : resolve(folder);
    return new EmbeddedEngine(place, mayOpen, backups);
  }
  const { RemoteEngine } = await import('./engine/remote.ts');
  const { user, database, caFile } = options;
  return new RemoteEngine({
    url,
    user,
    database,
    password: (signal) => passwordOf(options, secrets, signal),
    ca: () => (caFile === undefined ? undefined : authorities(caFile)),
  });
}

/** Where the embedded engine may write backups; absolute. */
export function backupFolder({ backup: { folder } }: ColumnarOptions, dataDir: string): string {
  return folder === undefined ? join(dataDir, 'backups', 'columnar') : resolve(folder);
}

export function schemaOptions({ url, database, retentionDays, replicas }: ColumnarOptions): SchemaOptions {
  return url === undefined
    ? { database: EMBEDDED_DATABASE, retentionDays, replicas: 1, isDurable: true }
    : { database, retentionDays, replicas };
}

async function passwordOf(
  { password, passwordFile }: ColumnarOptions,
  secrets: SecretsStore | undefined,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (passwordFile !== undefined) return readTokenFile(resolve(passwordFile));
  if (password === undefined) return undefined;
  if (!secrets) {
    const reason = 'no plugin provides a secrets store';
    throw new KernelError('HF_CONFIG_SECRET_MISSING', { file: password, reason });
  }
  const { path, property } = parseSecretReference(password);
  return secrets.read(path, property, signal);
}

function authorities(file: string): Buffer {
  try {
    return readFileSync(resolve(file));
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new KernelError('HF_CONFIG_SECRET_MISSING', { file, reason }, { cause: error });
  }
}
