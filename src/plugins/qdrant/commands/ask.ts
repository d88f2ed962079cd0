import { postControl } from '../../../core/cli/index.ts';
import { HoldfastError, isCoded } from '../../../core/errors/index.ts';
import { isObject } from '../../../core/json.ts';
import type { CommandContext } from '../../../core/plugin/index.ts';

/**
 * Asks the instance that runs on the data folder.
 *
 * @returns undefined when none runs there
 * @throws HF_MEMORY_BACKUP it could not; HF_CONTROL_UNREACHABLE it cannot be asked
 */
export async function askInstance(
  { dataDir, signal }: CommandContext,
  path: string,
  body: object = {},
): Promise<Record<string, unknown> | undefined> {
  const answer = await postControl(dataDir, path, body, signal).catch((error) => {
    if (isCoded(error, 'HF_CONTROL_UNREACHABLE') && error.details.reason === 'nothing runs there')
      return undefined;
    throw error;
  });
  if (answer === undefined) return undefined;
  if (answer.status === 200 && isObject(answer.body)) return answer.body;
  if (answer.status === 404) {
    throw new HoldfastError('HF_CONTROL_UNREACHABLE', {
      dir: dataDir,
      reason: 'it speaks to no memory store',
    });
  }
  const said = isObject(answer.body) ? (answer.body.what ?? answer.body.reason) : undefined;
  const reason = typeof said === 'string' ? said : `it answered ${answer.status}`;
  const bare = /^No backup of the memory store was made: (.*)\.$/.exec(reason)?.[1] ?? reason;
  throw new HoldfastError('HF_MEMORY_BACKUP', { reason: bare.replace(/\.$/, '') });
}
