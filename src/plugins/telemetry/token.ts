import type { IngestKeys } from '../../core/contracts/ingest-keys.ts';
import { isLoopback } from '../../core/host/http/admission.ts';
import { readTokenFile } from '../../core/kernel/secret-file.ts';

/**
 * What to send as `authorization`, read for each batch: a rotated key needs no restart. What can't be read leaves the
 * header out, and the receiver says so.
 *
 * @param endpoint the key known here goes to no other machine by itself
 */
export function tokenReader(
  file: string | undefined,
  endpoint: string,
  keys: IngestKeys | undefined,
): () => Promise<string | undefined> {
  const isHere = !URL.canParse(endpoint) || isLoopback(new URL(endpoint).hostname.replace(/^\[|\]$/g, ''));
  return async () => {
    try {
      if (file !== undefined) return readTokenFile(file);
      return isHere ? await keys?.current() : undefined;
    } catch {
      return undefined;
    }
  };
}
