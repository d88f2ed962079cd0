import { request } from 'undici';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';

const DEADLINE_MS = 10_000;

/**
 * Asks the UI's API for a new ingest key. What it answers is not read: the key is taken from the collector's config,
 * which is the proof that it was adopted.
 *
 * @throws HF_INGEST_UI, HF_CONFIG_SECRET_*
 */
export async function regenerateInUi(
  { url, tokenFile, regeneratePath }: { url: string; tokenFile: string; regeneratePath: string },
  signal: AbortSignal,
): Promise<void> {
  const authorization = `Bearer ${readTokenFile(tokenFile)}`;
  let status: number;
  try {
    const answer = await request(`${url.replace(/\/+$/, '')}${regeneratePath}`, {
      method: 'PATCH',
      headers: { authorization, accept: 'application/json' },
      signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    status = answer.statusCode;
    // It holds the key: it is let go unread.
    await answer.body.dump({ limit: 65_536 });
  } catch (error) {
    if (signal.aborted) throw error;
    const reason =
      error instanceof Error && 'code' in error ? String(error.code) : 'it gave no answer in time';
    throw new HoldfastError('HF_INGEST_UI', { reason });
  }
  if (status >= 500) {
    const reason = `it answers ${status}, as it does while its document database is away`;
    throw new HoldfastError('HF_INGEST_UI', { reason });
  }
  if (status < 200 || status > 299)
    throw new HoldfastError('HF_INGEST_UI', { reason: `it answered ${status}` });
}
