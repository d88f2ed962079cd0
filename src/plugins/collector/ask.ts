import { type CommandContext, postControl } from '../../core/cli/index.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import { isObject } from '../../core/json.ts';

/**
 * Asks the collector plugin of the instance that runs on the data folder.
 *
 * @throws HF_CONTROL_UNREACHABLE none runs, or it has no such plugin; HF_INGEST_ROTATION it says no
 */
export async function askCollector<T extends object>(
  { dataDir, signal }: CommandContext,
  path: string,
  body: object,
): Promise<T> {
  const { status, body: answer } = await postControl(dataDir, path, body, signal);
  if (status === 200 && isObject(answer)) return answer as T;
  if (status === 409 && isObject(answer)) {
    const what = String(answer.what ?? answer.message ?? '');
    throw new HoldfastError('HF_INGEST_ROTATION', { reason: what.replace(/^.*?: |\.$/g, '') });
  }
  const reason = status === 404 ? 'it runs no collector plugin' : `it answered ${status}`;
  throw new HoldfastError('HF_CONTROL_UNREACHABLE', { dir: dataDir, reason });
}
