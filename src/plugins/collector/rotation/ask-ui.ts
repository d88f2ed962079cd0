import { HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';

/** The answer holds the key, so nothing of its body is kept. */
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 0, excess: 'cut', keepAlive: false });

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
    const place = `${url.replace(/\/+$/, '')}${regeneratePath}`;
    const headers = { authorization, accept: 'application/json' };
    status = (await http.call({ method: 'PATCH', url: place, headers, signal })).status;
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    const { reason } = error;
    throw new HoldfastError('HF_INGEST_UI', { reason });
  }
  if (status >= 500) {
    const reason = `it answers ${status}, as it does while its document database is away`;
    throw new HoldfastError('HF_INGEST_UI', { reason });
  }
  if (status < 200 || status > 299)
    throw new HoldfastError('HF_INGEST_UI', { reason: `it answered ${status}` });
}
