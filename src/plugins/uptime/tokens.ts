import { join, resolve } from 'node:path';
import type { SecretsStore } from '../../core/contracts/secrets-store.ts';
import type { Place } from '../../core/host/http/contract.ts';
import { readRuntimeFile } from '../../core/host/runtime/runtime-file.ts';
import { parseSecretReference } from '../../core/host/secrets/secret-reference.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../../core/kernel/errors/kernel-error.ts';
import { UptimeError } from './errors.ts';
import type { TokenSource } from './options.ts';

/** How long the secrets store may take, milliseconds. */
export const STORE_MS = 5_000;

export interface TokenPlaces {
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  readonly monitors: Readonly<Record<string, TokenSource>>;
  readonly store: SecretsStore | undefined;
}

/** The place of a monitor's token, for a person. */
export function tokenPlace(monitor: string, { dataDir, monitors }: TokenPlaces): string {
  const { tokenFile, secret } = monitors[monitor] ?? {};
  if (secret !== undefined) return `the secrets store, ${secret}`;
  return tokenFile === undefined ? join(dataDir, 'secrets', 'push', monitor) : resolve(tokenFile);
}

/**
 * Reads the present token of a monitor; it is not kept.
 *
 * @throws HF_UPTIME_TOKEN
 */
export async function readPushToken(monitor: string, places: TokenPlaces): Promise<string> {
  const place = tokenPlace(monitor, places);
  const refuse = (reason: string, cause?: unknown): never => {
    throw new UptimeError('HF_UPTIME_TOKEN', { monitor, reason, place }, { cause });
  };
  if (!/^[\w.-]+$/.test(monitor)) return refuse('it is not the name of a monitor');
  const token = await readFrom(monitor, place, places).catch((error: unknown) =>
    refuse(isCoded(error) ? error.what.replace(/\.$/, '') : 'it could not be read', error),
  );
  // The token becomes one segment of a path, so it must not change the address.
  if (!/^[\w.~-]{1,256}$/.test(token) || /^\.+$/.test(token)) {
    return refuse('it holds characters that no push token has: is it the whole push URL?');
  }
  return token;
}

async function readFrom(monitor: string, place: string, { monitors, store }: TokenPlaces): Promise<string> {
  const { secret } = monitors[monitor] ?? {};
  if (secret === undefined) return readTokenFile(place);
  if (!store) {
    throw new KernelError('HF_CONFIG_SECRET_MISSING', {
      file: secret,
      reason: 'no plugin provides a secrets store',
    });
  }
  const { path, property } = parseSecretReference(secret);
  return (await store.read(path, property, AbortSignal.timeout(STORE_MS))).trim();
}

/**
 * Where pushes go: the configured monitor, or the embedded one of the instance on the data folder.
 *
 * @param pid of that instance, when it is known: the address that a killed instance left is not used
 */
export function monitorPlace(url: string | undefined, dataDir: string, pid?: number): Place | undefined {
  if (url !== undefined) return { url };
  const file = readRuntimeFile(dataDir);
  return pid === undefined || file?.pid === pid ? file?.surfaces.uptime : undefined;
}
